import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { withFreeIds } from '../engine/taken_ids.ts';
import { utcNow } from '../engine/time.ts';
import { firstCustomClassId, standardResourceClasses } from './standard_resource_classes.ts';
import { standardTraits } from './standard_traits.ts';

/**
 * Makes sure that the standard traits and resource classes exist, as upstream does at each start. The id of a class is its index in the
 * list. If another class has this id, as in the data of an old Nova, the standard class gets a free id below the ids of custom classes.
 * Traits get their ids in the order of their names, so that standard traits come before custom ones. Names are added without a time limit:
 * where providers have inventories of an added class, as an old Nova left them, the entity tags of all these inventories are computed
 * again.
 */
export async function syncStandardNames({ kysely, unlimited }: Pick<Database, 'kysely' | 'unlimited'>): Promise<void> {
  const traits = sql`from unnest(${standardTraits}::text[]) with ordinality as standard (name, index)
    where not exists (select from traits t where t.name = standard.name)`;
  const classes = sql`from unnest(${standardResourceClasses}::text[]) with ordinality as standard (name, index)
    where not exists (select from resource_classes c where c.name = standard.name)`;
  const query = sql<{ traits: boolean; classes: boolean }>`
    select exists (select ${traits}) as traits, exists (select ${classes}) as classes`;
  const missing = await onlyRow(kysely, query);
  // At almost every start none is missing. An INSERT without rows must be avoided: its trigger would log a change for
  // all processes.
  if (missing.traits) {
    const insert = sql`insert into traits (name, created_at) select name, ${utcNow} ${traits} order by index
      on conflict (name) do nothing`;
    await withFreeIds(kysely, () => unlimited.transaction().execute((trx) => insert.execute(trx)));
  }
  if (missing.classes) {
    const last = sql`select greatest(max(id), ${standardResourceClasses.length}) from resource_classes where id < ${firstCustomClassId}`;
    const id = sql`case when exists (select from resource_classes where id = index - 1) then (${last}) + index else index - 1 end`;
    const insert = sql`insert into resource_classes (id, name, created_at) select ${id}, name, ${utcNow} ${classes}
      on conflict do nothing`;
    await unlimited.transaction().execute((trx) => insert.execute(trx));
  }
}
