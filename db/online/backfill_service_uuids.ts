import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { giveUuids } from '../statements/services/service_row.ts';
import { givingWay, type OnlineMigration } from './online_migration.ts';

/** Sets a uuid for old services without one, unless a read of the service has done so already. */
export function backfillServiceUuids(database: Database): OnlineMigration {
  return {
    name: 'backfill_service_uuids',
    runBatch: async (maxCount) => {
      const { length } = await givingWay(database, giveUuids(sql`true`, maxCount));
      return { found: length, done: length };
    },
  };
}
