/** A read may be ended by a deadlock with another program that locks one table after the other, such as a migration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { newestVersion, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';

/** Reads, each with a table that it locks first and one that it locks later. */
const reads = [
  { path: '/usages?project_id=p', first: 'projects', later: 'allocations', status: 200 },
  // A marker that is no UUID is looked up before the list is read.
  { path: '/consumers?marker=x', first: 'consumers', later: 'allocations', status: 400 },
] as const;

for (const { path, first, later, status } of reads) {
  test(`GET ${path} is repeated after a deadlock`, () =>
    withFreshDatabase('postgresql', async (fresh) => {
      const service = await openServiceOn(fresh);
      const database = await openDatabase(fresh.settings);
      try {
        const isWaiting = async () => {
          const { rows } = await sql`select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(database.kysely);
          return rows.length > 0;
        };
        const { answer } = await database.kysely.transaction().execute(async (migration) => {
          await sql`lock table ${sql.table(later)} in access exclusive mode`.execute(migration);
          const answer = requestsTo(service, `placement ${newestVersion}`)('GET', path);
          await until('the read waits', isWaiting);
          // The read waits for longer than this statement, so the server notices the deadlock there, and ends the read.
          await sql`lock table ${sql.table(first)} in access exclusive mode`.execute(migration);
          return { answer };
        });
        const { status: answered, text } = await answer;
        assert.equal(answered, status, text);
      } finally {
        await database.close();
        await service.close();
      }
    }));
}
