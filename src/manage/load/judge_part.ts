import { type Kysely, sql } from 'kysely';
import { lockNames, type PresentProvider, readPresent } from '../../../db/statements/load/read_beside.ts';
import type { Tables } from '../../../db/tables.ts';
import { aggregatesTag, inventoriesTag, providerTag, traitsTag } from '../../placement/entity_tag.ts';
import type { FileProvider, Problem } from './provider_line.ts';

/** Some lines of a file, compared with the database. */
export type JudgedPart = {
  readonly problems: readonly Problem[];
  /** The providers that are not in the database yet. */
  readonly missing: readonly FileProvider[];
  /** By UUID: the providers in the database with a UUID or a name of these lines, or the UUID of a parent. */
  readonly present: ReadonlyMap<string, PresentProvider>;
  readonly classIds: ReadonlyMap<string, number>;
  readonly traitIds: ReadonlyMap<string, number>;
};

/**
 * Compares lines with the database, in a transaction. A provider that exists with the same content is neither a problem
 * nor missing, so a load that was interrupted can be repeated.
 *
 * @param comesBefore whether an earlier line has this UUID
 */
export async function judgePart(
  db: Kysely<Tables>,
  part: readonly FileProvider[],
  comesBefore: (uuid: string) => boolean,
): Promise<JudgedPart> {
  // The statistics may be from when the tables were empty. By these, the planner would choose to read all rows.
  await sql`set local enable_seqscan = off`.execute(db);
  const uuids = new Set(part.flatMap(({ uuid, parentUuid }) => (parentUuid === null ? [uuid] : [uuid, parentUuid])));
  const found = await readPresent(
    db,
    [...uuids],
    part.map(({ name }) => name),
  );
  const present = new Map(found.map((provider) => [provider.uuid, provider]));
  const byName = new Map(found.map((provider) => [provider.name, provider]));
  const classIds = await lockNames(
    db,
    'resource_classes',
    distinct(part, ({ inventories }) => inventories.map(([name]) => name)),
  );
  const traitIds = await lockNames(
    db,
    'traits',
    distinct(part, ({ traits }) => traits),
  );
  const problems: Problem[] = [];
  const missing: FileProvider[] = [];
  for (const provider of part) {
    const { line, uuid, name, parentUuid } = provider;
    const refuse = (problem: string): number => problems.push({ line, problem });
    const former = present.get(uuid);
    if (former === undefined) missing.push(provider);
    else if (former.tags.includes(null)) {
      refuse(`uuid: ${uuid} has no stored entity tags yet; run "placement-manage online-data-migrations" first`);
    } else if (tagsOf(provider).some((tag, index) => tag !== former.tags[index])) {
      refuse(`uuid: ${uuid} is that of a provider which exists and has another name, another parent or other parts`);
    }
    const namesake = byName.get(name);
    if (namesake !== undefined && namesake.uuid !== uuid) {
      refuse(`name: ${JSON.stringify(name)} is that of provider ${namesake.uuid}, which exists`);
    }
    if (parentUuid !== null) {
      const parent = present.get(parentUuid);
      if (parentUuid === uuid) refuse(`parent_provider_uuid: ${uuid} is the provider itself`);
      else if (parent === undefined && !comesBefore(parentUuid)) {
        refuse(`parent_provider_uuid: ${parentUuid} is neither in a line before nor in the database`);
      } else if (parent?.rootId === null) {
        refuse(
          `parent_provider_uuid: ${parentUuid} has no root yet; run "placement-manage online-data-migrations" first`,
        );
      }
    }
    for (const [className] of provider.inventories) {
      if (!classIds.has(className)) refuse(`inventories: there is no resource class ${className}; create it first`);
    }
    for (const trait of provider.traits) {
      if (!traitIds.has(trait)) refuse(`traits: there is no trait ${trait}; create it first`);
    }
  }
  return { problems, missing, present, classIds, traitIds };
}

const distinct = (part: readonly FileProvider[], namesOf: (provider: FileProvider) => readonly string[]): string[] => [
  ...new Set(part.flatMap(namesOf)),
];

/** Four entity tags: of the provider itself, of its inventories, of its traits and of its aggregates. */
export const tagsOf = ({ uuid, name, parentUuid, inventories, traits, aggregates }: FileProvider) =>
  [
    providerTag({ uuid, name, parentUuid }),
    inventoriesTag(inventories),
    traitsTag(traits),
    aggregatesTag(aggregates),
  ] as const;
