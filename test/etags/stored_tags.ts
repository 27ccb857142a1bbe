import assert from 'node:assert/strict';
import { readAllocations } from '../../db/statements/claims/read_allocations.ts';
import {
  aggregatesTagOf,
  inventoriesTagOf,
  inventoryTagOf,
  providerTagOf,
  traitsTagOf,
} from '../../src/fleet/model/entity_tags.ts';
import { allocationsTag, nameTag } from '../../src/placement/entity_tag.ts';
import type { PlacementService } from '../../src/start/service.ts';

type Tags = Readonly<Record<string, string | null>>;

/** Every stored tag, by its resource. */
export async function storedTags({ database: { kysely } }: PlacementService): Promise<Tags> {
  const providers = await kysely
    .selectFrom('resource_providers as p')
    .leftJoin('resource_provider_etags as e', 'e.resource_provider_id', 'p.id')
    .select(['p.id', 'e.provider', 'e.inventories', 'e.traits', 'e.aggregates'])
    .execute();
  const inventories = await kysely
    .selectFrom('inventories as i')
    .innerJoin('resource_providers as p', 'p.id', 'i.resource_provider_id')
    .select(['i.resource_provider_id as provider', 'i.resource_class_id as class', 'i.etag'])
    .execute();
  const consumers = await kysely.selectFrom('consumers').select(['uuid', 'etag']).execute();
  const classes = await kysely.selectFrom('resource_classes').select(['name', 'etag']).execute();
  const traits = await kysely.selectFrom('traits').select(['name', 'etag']).execute();
  return Object.fromEntries([
    ...providers.flatMap(({ id, ...tags }) => Object.entries(tags).map(([part, etag]) => [`${part} of ${id}`, etag])),
    ...inventories.map(({ provider, class: id, etag }) => [`inventory ${id} of ${provider}`, etag]),
    ...consumers.map(({ uuid, etag }) => [`consumer ${uuid}`, etag]),
    ...classes.map(({ name, etag }) => [`class ${name}`, etag]),
    ...traits.map(({ name, etag }) => [`trait ${name}`, etag]),
  ]);
}

/** The same tags, computed from the content. Null if there must be no tag. */
async function computedTags({ database, fleet }: PlacementService): Promise<Tags> {
  const current = await fleet.fresh();
  const custom = (name: string) => (name.startsWith('CUSTOM_') ? nameTag(name) : null);
  const consumers = await database.kysely.selectFrom('consumers').select('uuid').execute();
  return Object.fromEntries([
    ...[...current.byId.values()].flatMap((provider) => [
      [`provider of ${provider.id}`, providerTagOf(provider)],
      [`inventories of ${provider.id}`, inventoriesTagOf(current, provider)],
      [`traits of ${provider.id}`, traitsTagOf(current, provider.traitIds)],
      [`aggregates of ${provider.id}`, aggregatesTagOf(provider)],
      ...provider.inventories.map((inventory) => [
        `inventory ${inventory.fields.classId} of ${provider.id}`,
        inventoryTagOf(inventory),
      ]),
    ]),
    ...(await Array.fromAsync(consumers, async ({ uuid }) => [`consumer ${uuid}`, await computedOf(uuid)])),
    ...Array.from(current.classes.byName.keys(), (name) => [`class ${name}`, custom(name)]),
    ...Array.from(current.traits.byName.keys(), (name) => [`trait ${name}`, custom(name)]),
  ]);

  async function computedOf(uuid: string): Promise<string | null> {
    const rows = await readAllocations(database, [uuid]);
    const [first] = rows;
    if (first?.project_id == null || first.user_id == null) return null;
    const allocations = new Map<string, Map<string, number>>();
    for (const { provider_uuid, class_name, used } of rows) {
      const amounts = allocations.get(provider_uuid) ?? new Map<string, number>();
      allocations.set(provider_uuid, amounts.set(class_name, used));
    }
    const { project_id: projectId, user_id: userId, consumer_type: consumerType } = first;
    return allocationsTag({ allocations, projectId, userId, consumerType });
  }
}

/** Checks that each stored tag is right. It may be missing if `mayLack` is true. */
export async function assertStored(service: PlacementService, what: string, mayLack: boolean): Promise<void> {
  const [stored, computed] = [await storedTags(service), await computedTags(service)];
  const wanted = mayLack
    ? Object.fromEntries(Object.entries(computed).map(([of, etag]) => [of, stored[of] === null ? null : etag]))
    : computed;
  assert.deepEqual(stored, wanted, what);
}
