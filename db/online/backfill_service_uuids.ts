import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { givingWay } from './give_way.ts';
import type { OnlineMigration } from './online_migration.ts';

/** Gives old services without a uuid one, unless a read of the service has done so already. */
export function backfillServiceUuids(database: Database): OnlineMigration {
  return {
    name: 'backfill_service_uuids',
    runBatch: async (maxCount) => {
      const { length } = await givingWay(database, giveUuids(maxCount));
      return { found: length, done: length };
    },
  };
}

const giveUuids = (limit: number) =>
  sql<{ readonly id: number }>`
    update services s set uuid = gen_random_uuid()::text
    from (select cell_id, id from services where uuid is null order by cell_id, id limit ${sql.lit(limit)} for update) as old
    where s.cell_id = old.cell_id and s.id = old.id
    returning s.id`;
