/**
 * What the change log returns since a snapshot, while transactions begin and end in any order, and after old rows were
 * pruned.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import {
  changesSince,
  type FleetSnapshot,
  inventoryChangesSince,
  isLogTooShort,
  readFleetSnapshot,
  snapshotParts,
} from '../../db/fleet/change_log.ts';
import { readChangedIds } from '../../db/fleet/changed_parts.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { checkForChanges, readChanges } from '../../db/fleet/read_changes.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { withOtherConnection } from './two_connections.ts';

const writers = 3;
const writer = fc.nat({ max: writers - 1 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ does: fc.constant('log' as const), writer }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('commit' as const, 'rollback' as const), writer }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('look' as const) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('prune' as const) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('lose' as const, 'give again' as const) }) },
);

/**
 * The numbers of the rows that a log returns, and of those that were written, since a snapshot. One statement reads both,
 * so they are from the same snapshot.
 */
type LogRead = {
  readonly found: readonly (number | null)[];
  readonly written: readonly number[];
  readonly isTooShort: boolean;
};

/** A snapshot, and how many snapshots were read before it. */
type Read = FleetSnapshot & { readonly index: number };

const compare = (
  log: RawBuilder<unknown>,
  name: string,
  isTooShort: RawBuilder<boolean>,
  { pgSnapshot, index }: Read,
) =>
  sql<LogRead>`select array(select provider_id from (${log}) as since order by 1) as found,
    array(select number from written where log = ${name}
      and coalesce(${index} < snapshots, not pg_visible_in_snapshot(xid, ${pgSnapshot}::pg_snapshot)) order by 1) as written,
    ${isTooShort} as "isTooShort"`;

test('the log returns exactly the rows that a snapshot had not read, or reports that the log is too short', async (t) => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Transactions at the same time need a PostgreSQL server.');
    const { connection } = settings;
    const database = await openDatabase(settings);
    // `snapshots`: how many snapshots had been read when a number was assigned again.
    await sql`create table written (xid xid8 default pg_current_xact_id(), log text, number integer, snapshots integer)`.execute(
      database.kysely,
    );
    const clients = await Promise.all(
      Array.from({ length: writers }, async () => {
        const client = new pg.Client({ connectionString: connection });
        await client.connect();
        return client;
      }),
    );
    const third = new pg.Client({ connectionString: connection });
    await third.connect();
    const seen = { whole: 0, underWay: 0, short: 0, again: 0 };
    let number = 0;
    let taken = 0;
    const logs = [
      ['provider_changes', 'whole, provider_id', 'false, '],
      ['inventory_changes', 'provider_id', ''],
    ] as const;
    const log = async (client: pg.Client): Promise<void> => {
      for (const [table, columns, values] of logs) {
        number += 1;
        await client.query(`insert into ${table} (${columns}) values (${values}${number})`);
        await client.query(`insert into written (log, number) values ('${table}', ${number})`);
      }
    };
    /** Rolls back a transaction. @returns its number */
    const lose = async (): Promise<string> => {
      await third.query('begin');
      const { rows } = await third.query('select pg_current_xact_id()::text as xid');
      await third.query('rollback');
      return rows[0].xid;
    };
    /**
     * Logs as transactions would to which the server, after a crash, gives the numbers of some that were rolled back: of those that are
     * newer than all that are logged.
     */
    const giveAgain = async (xids: readonly string[]): Promise<void> => {
      const newest = await third.query(`select max(xid::text::bigint)::text as xid from (
        select xid from provider_changes union all select xid from inventory_changes
        union all select xid from provider_changes_horizon) as logged`);
      for (const xid of xids.filter((each) => BigInt(each) > BigInt(newest.rows[0].xid))) {
        seen.again += 1;
        await third.query('begin');
        for (const [table, columns, values] of logs) {
          number += 1;
          await third.query(`insert into ${table} (xid, ${columns}) values ('${xid}', ${values}${number})`);
          await third.query(
            `insert into written (xid, log, number, snapshots) values ('${xid}', '${table}', ${number}, ${taken})`,
          );
        }
        await third.query('commit');
      }
    };
    const check = async (snapshot: Read): Promise<void> => {
      const mayHaveAll = sql<boolean>`exists (select from (${inventoryChangesSince(snapshot)}) as since where provider_id is null)`;
      for (const query of [
        compare(changesSince(snapshot), 'provider_changes', isLogTooShort(snapshot), snapshot),
        compare(inventoryChangesSince(snapshot), 'inventory_changes', mayHaveAll, snapshot),
      ]) {
        const { found, written, isTooShort } = await onlyRow(database.kysely, query);
        if (!isTooShort) assert.deepEqual(found, written, snapshot.pgSnapshot);
        seen[isTooShort ? 'short' : /:.*:./.test(snapshot.pgSnapshot) ? 'underWay' : 'whole'] += 1;
      }
      // No writer commits meanwhile.
      const { hasChanged } = await checkForChanges(database, snapshot);
      const { found, isTooShort } = await onlyRow(
        database.kysely,
        compare(changesSince(snapshot), 'provider_changes', isLogTooShort(snapshot), snapshot),
      );
      assert.equal(hasChanged, isTooShort || found.length > 0, snapshot.pgSnapshot);
    };
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
          const open = new Set<pg.Client>();
          const lost: string[] = [];
          const snapshots: Read[] = [];
          const look = async () => {
            snapshots.push({ ...(await readFleetSnapshot(database.kysely)), index: taken });
            taken += 1;
          };
          await look();
          for (const { does, ...which } of steps) {
            const client = 'writer' in which ? clients[which.writer] : undefined;
            if (does === 'look') await look();
            else if (does === 'prune') await pruneChanges(database, await pruneChanges(database, undefined));
            else if (does === 'lose') lost.push(await lose());
            else if (does === 'give again') await giveAgain(lost.splice(0));
            else if (client !== undefined && does === 'log') {
              if (!open.has(client)) await client.query('begin');
              open.add(client);
              await log(client);
            } else if (client !== undefined && open.delete(client)) await client.query(does);
            for (const snapshot of snapshots) await check(snapshot);
          }
          for (const client of open) await client.query('commit');
          for (const snapshot of snapshots) await check(snapshot);
        }),
        { numRuns: 60 },
      );
      t.diagnostic(JSON.stringify(seen));
      for (const [kind, count] of Object.entries(seen))
        assert.ok(count >= 10, `only ${count} answers were of kind ${kind}`);
    } finally {
      await Promise.all([...clients, third].map((client) => client.end()));
      await database.close();
    }
  });
});

test('a log is not too short for a transaction that began before the horizon and is still open', async () => {
  await withOtherConnection(async ({ database, other }) => {
    await other.query('begin; select pg_current_xact_id()');
    await sql`update provider_changes_horizon set xid = pg_current_xact_id()`.execute(database.kysely);
    // Other tests use the server, too: only this transaction must be under way, since another one may end at any time.
    let snapshot: FleetSnapshot = { pgSnapshot: '', lastXid: '0', serverRun: '' };
    await until('no other transaction is under way', async () => {
      snapshot = await readFleetSnapshot(database.kysely);
      return snapshotParts(snapshot.pgSnapshot).underWay.length === 1;
    });
    const isTooShort = async () =>
      (await onlyRow(database.kysely, sql<{ yes: boolean }>`select ${isLogTooShort(snapshot)} as yes`)).yes;
    assert.equal(await isTooShort(), false);
    await other.query('commit');
    assert.equal(await isTooShort(), true, 'its rows may have been pruned');
  });
});

test('a transaction whose number was assigned before is read, also between newer ones that are under way', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Transactions at the same time need a PostgreSQL server.');
    const database = await openDatabase(settings);
    const others = [1, 2].map(() => new pg.Client({ connectionString: settings.connection }));
    const begin = async (client: pg.Client): Promise<string> => {
      await client.query('begin');
      return (await client.query('select pg_current_xact_id()::text as xid')).rows[0].xid;
    };
    try {
      for (const other of others) await other.connect();
      const [first, second] = others as [pg.Client, pg.Client]; // as made above
      const lost = [await begin(first)];
      await first.query('rollback');
      const earlier = await begin(first);
      lost.push(await begin(second));
      await second.query('rollback');
      const later = await begin(second);
      const snapshot = await readFleetSnapshot(database.kysely);
      for (const other of others) await other.query('insert into provider_changes (whole) values (true)');
      await sql`insert into provider_changes (xid, whole) select *, true from unnest(${lost}::xid8[])`.execute(
        database.kysely,
      );
      const found = async () => {
        const { rows } = await sql<{ xid: string }>`select xid::text from (${changesSince(snapshot)}) as since`.execute(
          database.kysely,
        );
        return rows.map(({ xid }) => xid).sort();
      };
      assert.deepEqual(await found(), lost.toSorted());
      await second.query('commit');
      assert.deepEqual(await found(), [...lost, later].sort());
      await first.query('commit');
      assert.deepEqual(await found(), [...lost, earlier, later].sort());
      assert.equal((await checkForChanges(database, snapshot)).hasChanged, true);
    } finally {
      for (const other of others) await other.end();
      await database.close();
    }
  });
});

test('the newest transaction is found by its number, also where that has a digit more than another', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await sql`delete from provider_changes`.execute(database.kysely);
      await sql`insert into provider_changes (xid, provider_id, whole) values ('99', 1, true), ('100', 2, true)`.execute(
        database.kysely,
      );
      const since = { ...(await readFleetSnapshot(database.kysely)), pgSnapshot: '98:98:', lastXid: '97' };
      assert.equal((await readChanges(database, since)).lastXid, '100');
      const changed = await database.unlimited.transaction().execute((trx) => readChangedIds(trx, since));
      assert.deepEqual([changed.lastXid, changed.ids], ['100', [1, 2]]);
    } finally {
      await database.close();
    }
  });
});
