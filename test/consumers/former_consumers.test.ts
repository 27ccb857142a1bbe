/** The table of former consumers: how it is read, written in races, and how former consumers are forgotten. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RawBuilder, sql } from 'kysely';
import { pino } from 'pino';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { briefWait } from '../../db/engine/slow_lane.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import { readConsumers } from '../../db/statements/claims/read_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { forgetFormerConsumers } from '../../db/statements/consumers/remove_ended.ts';
import { awaitConsumer } from '../../db/statements/locked_rows.ts';
import { forgetFromTimeToTime } from '../../src/claims/deletions.ts';
import { openOutages } from '../../src/log/outages.ts';
import { claim } from '../races/judged_claim.ts';
import { untilWaiting, withTwoConnections } from '../races/two_connections.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';
import { reportReads } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

const logger = pino({ level: 'silent' });

const former = async ({ kysely }: Pick<Database, 'kysely'>): Promise<readonly string[]> =>
  (await sql<{ uuid: string }>`select uuid from former_consumers order by uuid`.execute(kysely)).rows.map(
    ({ uuid }) => uuid,
  );

/** Writes rows of former consumers that were removed some seconds ago. */
const removedAgo = (uuids: RawBuilder<unknown>, seconds: number): RawBuilder<unknown> =>
  sql`insert into former_consumers select uuid, 2, now() - make_interval(secs => ${seconds}) from ${uuids} as u (uuid)`;

for (const engine of engines) {
  test(`former consumers are forgotten after their time, but not while there is a new one, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      const { kysely } = database;
      try {
        await sql`insert into consumers (uuid, project_id, user_id) values ('made again', 1, 1)`.execute(kysely);
        await removedAgo(sql`unnest(array['made again', 'old'])`, 100).execute(kysely);
        await removedAgo(sql`unnest(array['new'])`, 50).execute(kysely);
        // They fill two pages, and part of a third one.
        await removedAgo(sql`(select 'of many ' || n from generate_series(1, 2500) as n)`, 100).execute(kysely);
        const stop = forgetFromTimeToTime(database, { logger, outages: openOutages(logger) }, 70);
        await stop();
        assert.equal((await former(database)).length, 2503, 'only from time to time');
        let pages = 0;
        for (let position: string | undefined = ''; position !== undefined; pages += 1) {
          position = await forgetFormerConsumers(database, position, 70);
        }
        assert.equal(pages, 3);
        assert.deepEqual(await former(database), ['made again', 'new']);
        await sql`delete from consumers`.execute(kysely);
        await forgetFormerConsumers(database, '', 70);
        assert.deepEqual(await former(database), ['made again', 'new'], 'it was removed again just now');
      } finally {
        await database.close();
      }
    });
  });

  test(`reads look former consumers up one by one, by plans from a time without them, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase({ ...settings, maxPoolSize: 1 });
      const { kysely } = database;
      const reading = () => readConsumers(database, ['of many 7', 'none']);
      const scans = async (): Promise<number> => {
        await reportReads(kysely);
        const count = sql<{ count: number }>`select seq_scan::integer as count from pg_stat_user_tables
          where relname = 'former_consumers'`;
        return (await onlyRow(kysely, count)).count;
      };
      try {
        // After five executions the server keeps one plan for all values.
        for (let time = 0; time < 8; time += 1) await reading();
        await removedAgo(sql`(select 'of many ' || n from generate_series(1, 20000) as n)`, 100).execute(kysely);
        const before = await scans();
        const states = await reading();
        assert.equal(states.get('of many 7')?.formerGenerations, 2);
        assert.equal(states.get('none')?.formerGenerations, 0);
        assert.equal(await scans(), before);
      } finally {
        await database.close();
      }
    });
  });
}

test('a row that another transaction has locked, or has written meanwhile, is not forgotten', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await removedAgo(sql`unnest(array['a', 'b'])`, 100).execute(database.kysely);
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('a', 1, 1, 4)`);
    await other.query('begin');
    await other.query(`delete from consumers where uuid = 'a'`);
    await forgetFormerConsumers(database, '', 70);
    assert.deepEqual(await former(database), ['a']);
    await other.query('commit');
    await forgetFormerConsumers(database, '', 70);
    const { rows } = await other.query('select uuid, generations::integer from former_consumers');
    assert.deepEqual(rows, [{ uuid: 'a', generations: 2 + 5 }]);
  });
});

test('a record that a transaction makes and removes to wait for others, or to prove that there is none, leaves nothing', async () => {
  await withTwoConnections(async ({ database }) => {
    await awaitConsumer('a')(database, briefWait);
    const [forB, forC] = claim(['b', 'c']).consumers;
    assert.ok(forB !== undefined && forC !== undefined);
    await writeClaims(database, [{ ...claim([]), consumers: [forB, { ...forC, allocations: [] }] }]);
    assert.deepEqual(await former(database), []);
  });
});

test('a statement that waits until a consumer is removed returns the generation of the consumer that it makes', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('a', 1, 1, 7)`);
    await other.query('begin');
    await other.query(`delete from consumers where uuid = 'a'`);
    // As of a claim by query, which tells more.
    const made = writeClaims(database, [{ ...claim(['a', 'b']), reliedOn: [1] }]);
    await untilWaiting(other);
    await other.query('commit');
    const { lost, formerGenerations } = await made;
    assert.deepEqual(lost, [undefined]);
    assert.deepEqual([...formerGenerations].sort(), [
      ['a', 8],
      ['b', 0],
    ]);
  });
});

test('two transactions that remove and make the same consumers do not wait in a circle', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const [one, two] = [await openDatabase(settings), await openDatabase(settings)];
    try {
      const uuids = Array.from({ length: 40 }, (_, n) => `c${n}`);
      const make = sql`insert into consumers (uuid, project_id, user_id)
        select uuid, 1, 1 from unnest(${uuids}::text[]) as u (uuid) order by uuid collate "C" on conflict do nothing`;
      const work = async (database: Database): Promise<void> => {
        for (let time = 0; time < 30; time += 1) {
          await database.transaction([make]);
          await deleteAllocations(database, uuids);
          await forgetFormerConsumers(database, '', 0);
        }
      };
      await Promise.all([work(one), work(two)]);
      await until('all are forgotten', async () => {
        await forgetFormerConsumers(one, '', 0);
        return (await former(one)).length === 0;
      });
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });
});
