import { type Kysely, sql } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { failureKind } from '../../../db/engine/failure_kind.ts';
import { withFreeIds } from '../../../db/engine/taken_ids.ts';
import type { Tables } from '../../../db/schema/tables.ts';
import {
  ensureAggregates,
  type InventoryToInsert,
  insertInventories,
  insertMembers,
  insertProviders,
  insertProviderTags,
  insertTraits,
  type ProviderToInsert,
} from '../../../db/statements/load/insert_providers.ts';
import { takeProviderIds } from '../../../db/statements/load/read_beside.ts';
import { providerTagsAreWritten } from '../../../db/statements/written_tags.ts';
import { inventoryTag } from '../../placement/entity_tag.ts';
import { type JudgedPart, judgePart, tagsOf } from './judge_part.ts';
import type { FileProvider, Problem } from './provider_line.ts';

/** How often a part is tried, if another program takes a name or a UUID meanwhile. */
const attempts = 3;

/**
 * Writes some lines in one transaction. The triggers log the change, so that every process of the service reads it.
 *
 * @returns how many providers were written; or what is wrong with the lines, and then none is written
 */
export async function writePart(
  { patient }: Database,
  part: readonly FileProvider[],
): Promise<number | readonly Problem[]> {
  const uuids = new Set(part.map(({ uuid }) => uuid));
  for (let attempt = 1; ; attempt++) {
    try {
      return await withFreeIds(patient, () =>
        patient.transaction().execute(async (trx) => {
          await sql`select from ${providerTagsAreWritten}`.execute(trx);
          const judged = await judgePart(trx, part, (uuid) => uuids.has(uuid));
          if (judged.problems.length > 0) return judged.problems;
          if (judged.missing.length > 0) await insert(trx, judged);
          return judged.missing.length;
        }),
      );
    } catch (error) {
      if (attempt === attempts || failureKind(error) !== 'taken') throw error;
    }
  }
}

async function insert(trx: Kysely<Tables>, { missing, present, classIds, traitIds }: JudgedPart): Promise<void> {
  const ids = await takeProviderIds(trx, missing.length);
  const made = new Map<string, ProviderToInsert>();
  const inventories: InventoryToInsert[] = [];
  const held: { providerId: number; traitId: number }[] = [];
  const members: { providerId: number; aggregate: string }[] = [];
  for (const [place, provider] of missing.entries()) {
    const id = known(ids[place]);
    const { uuid, name, parentUuid } = provider;
    const [own, ofInventories, ofTraits, ofAggregates] = tagsOf(provider);
    const tags = { provider: own, inventories: ofInventories, traits: ofTraits, aggregates: ofAggregates };
    made.set(uuid, { id, uuid, name, tags, ...placeInTree(id, parentUuid, made, present) });
    for (const [className, fields] of provider.inventories) {
      inventories.push({
        providerId: id,
        classId: known(classIds.get(className)),
        ...fields,
        tag: inventoryTag(fields),
      });
    }
    for (const trait of provider.traits) held.push({ providerId: id, traitId: known(traitIds.get(trait)) });
    for (const aggregate of provider.aggregates) members.push({ providerId: id, aggregate });
  }
  const providers = [...made.values()];
  await insertProviders(providers).execute(trx);
  await insertProviderTags(providers).execute(trx);
  if (inventories.length > 0) await insertInventories(inventories).execute(trx);
  if (held.length > 0) await insertTraits(held).execute(trx);
  if (members.length === 0) return;
  await ensureAggregates([...new Set(members.map(({ aggregate }) => aggregate))]).execute(trx);
  await insertMembers(members).execute(trx);
}

function placeInTree(
  id: number,
  parentUuid: string | null,
  made: ReadonlyMap<string, ProviderToInsert>,
  present: JudgedPart['present'],
): Pick<ProviderToInsert, 'parentId' | 'rootId' | 'outsideId'> {
  if (parentUuid === null) return { parentId: null, rootId: id, outsideId: null };
  const parent = made.get(parentUuid);
  if (parent !== undefined) return { parentId: parent.id, rootId: parent.rootId, outsideId: parent.outsideId };
  const outside = known(present.get(parentUuid));
  return { parentId: outside.id, rootId: null, outsideId: outside.id };
}

/** A value that exists if the lines were judged to be right. */
function known<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('A line that was judged to be right refers to something that is not there.');
  return value;
}
