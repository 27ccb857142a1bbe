/** After any write by any program, the fleet of every process is equal to a fresh load of the database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { sql } from 'kysely';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { readPages } from '../../db/fleet/pages.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import type { PlacementService as Service } from '../../src/start/service.ts';
import { type TestDatabase, withFreshDatabase } from '../support/engines.ts';
import { openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';
import { formOf } from './fleet_form.ts';
import { newStock, writeByApi, writeBySql } from './fleet_writes.ts';
import { randomFrom, seedFor } from './random.ts';

type TwoServices = { readonly services: readonly [Service, Service]; readonly client: pg.Client };

/** Two services, and a client of their database. */
async function withTwoServices(use: (two: TwoServices) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    const client = new pg.Client({ connectionString: urlOf(database) });
    await client.connect();
    const services = [await openServiceOn(database), await openServiceOn(database)] as const;
    try {
      await use({ services, client });
    } finally {
      await Promise.all(services.map((service) => service.close()));
      await client.end();
    }
  });
}

function urlOf({ settings }: TestDatabase): string {
  if ('connection' in settings) return settings.connection;
  throw new Error('This test needs several connections, and so a PostgreSQL server.');
}

/** After some refreshes without a change, the next ones look first whether there is one. */
async function refreshUntilQuiet({ fleet }: Service): Promise<void> {
  for (let i = 0; i < 3; i++) await fleet.fresh();
}

async function assertTrue({ database, fleet }: Service, what: string): Promise<void> {
  const refreshed = formOf(await fleet.fresh());
  // In pages so small that a parent and its child are on different pages, in either order.
  const loaded = formOf((await loadFleet(database, { providersPerPage: 3, isStart: true })).living.fleet);
  assert.deepEqual(refreshed, loaded, what);
}

test('after any writes, by the API of two services and by SQL, each fleet equals a fresh load', async (t) => {
  const random = randomFrom(seedFor(t));
  await withTwoServices(async ({ services, client }) => {
    const [first, second] = services;
    const stock = newStock(random);
    const started = services.map(({ fleet }) => fleet.counts.loads);
    for (let i = 0; i < 40; i++) await writeByApi(first, stock, random);
    for (let round = 1; round <= 250; round++) {
      if (random.percent(50)) await refreshUntilQuiet(random.pick(services));
      const count = 1 + random.below(4);
      for (let i = 0; i < count; i++) {
        if (random.percent(45)) await writeBySql(client, random);
        else await writeByApi(random.pick(services), stock, random);
      }
      // So many rows that the changes are read in pages.
      if (random.percent(15)) {
        await client.query(
          'insert into provider_changes (provider_id, whole) select -1, true from generate_series(1, 3001)',
        );
      }
      // Sometimes one service falls behind by many writes.
      if (random.percent(80)) await assertTrue(first, `the first service in round ${round}`);
      if (random.percent(50)) await assertTrue(second, `the second service in round ${round}`);
    }
    const counts = services.map(({ fleet }, place) => fleet.counts.loads - (started[place] ?? 0));
    t.diagnostic(`${first.fleet.known.byId.size} providers in the end; whole loads after truncation: ${counts}`);
    assert.ok(first.fleet.counts.refreshes > 10 * (counts[0] ?? 0), 'most refreshes must not load everything');
  });
});

test('each fleet also equals a fresh load while writers and refreshes run at the same time', async (t) => {
  const random = randomFrom(seedFor(t));
  await withTwoServices(async ({ services, client }) => {
    const stock = newStock(random);
    for (let i = 0; i < 40; i++) await writeByApi(services[0], stock, random);
    for (let round = 1; round <= 12; round++) {
      let writing = true;
      const refreshing = services.flatMap(({ fleet }) =>
        [1, 2, 3].map(async () => {
          while (writing) await fleet.fresh();
        }),
      );
      const byApi = services.map(async (service) => {
        const choice = random.fork();
        for (let i = 0; i < 15; i++) await writeByApi(service, stock, choice);
      });
      const bySql = async () => {
        for (let i = 0; i < 15; i++) await writeBySql(client, random);
      };
      const written = await Promise.allSettled([...byApi, bySql()]);
      writing = false;
      await Promise.all([
        ...refreshing,
        ...written.map(({ status, ...rest }) => assert.equal(status, 'fulfilled', inspect(rest))),
      ]);
      for (const service of services) await assertTrue(service, `round ${round}`);
    }
  });
});

test('a start reads one snapshot on two connections, or on one if there is no other', async () => {
  await withFreshDatabase('postgresql', async (place) => {
    const client = new pg.Client({ connectionString: urlOf(place) });
    const writer = new pg.Client({ connectionString: urlOf(place) });
    await Promise.all([client.connect(), writer.connect()]);
    const database = await openDatabase({ connection: urlOf(place), maxPoolSize: 1 });
    let isOver = false;
    const load = async (): Promise<void> => {
      const { fleet } = (await loadFleet(database, { providersPerPage: 5, isStart: true })).living;
      assert.equal(fleet.byId.size, 200);
      assert.equal(new Set(Array.from(fleet.byId.values(), ({ generation }) => generation)).size, 1);
    };
    try {
      await client.query(`insert into resource_providers (uuid, name, generation)
        select 'p' || n, 'p' || n, 0 from generate_series(1, 200) as n`);
      const writing = (async () => {
        // A table lock waits for a start; a start that waited for it as well would end with this limit only.
        await writer.query(`set lock_timeout = '10s'`);
        while (!isOver) {
          await writer.query('update resource_providers set generation = generation + 1');
          await writer.query('begin; lock table inventories in access exclusive mode; commit');
        }
      })();
      for (let count = 0; count < 10; count += 1) await load();
      await until('both connections have ended a transaction', async () => {
        const ended = await client.query(`select from pg_stat_activity where datname = current_database()
          and query in ('commit', 'rollback') and pid <> pg_backend_pid()`);
        return ended.rowCount === 2;
      });
      await database.kysely.connection().execute(load);
      isOver = true;
      await writing;
    } finally {
      isOver = true;
      await database.close();
      await Promise.all([client.end(), writer.end()]);
    }
  });
});

test('the pages of a second reader that fails are read by the first one', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await sql`insert into resource_providers (uuid, name, generation) select 'p' || n, 'p' || n, 0 from generate_series(1, 20) as n`.execute(
        database.kysely,
      );
      const { rows } = await sql<{ id: number }>`select id from resource_providers order by id`.execute(
        database.kysely,
      );
      const ids = rows.map(({ id }) => id);
      const read: number[] = [];
      await database.unlimited.transaction().execute((first) =>
        database.kysely.transaction().execute(async (second) => {
          await assert.rejects(sql`select 1 / 0`.execute(second));
          const pages = readPages(
            [first, second],
            ids.map((id) => [id]),
          );
          for await (const { providers } of pages) read.push(...providers.map(({ id }) => id));
        }),
      );
      assert.deepEqual(read, ids);
    } finally {
      await database.close();
    }
  });
});

test('only a fleet that fell behind the pruned part of the log loads everything', async () => {
  await withTwoServices(async ({ services, client }) => {
    const [awake, asleep] = services;
    const insert = (name: string) =>
      client.query('insert into resource_providers (uuid, name, generation) values (gen_random_uuid()::text, $1, 0)', [
        name,
      ]);
    const logged = async () => Number((await client.query('select count(*) from provider_changes')).rows[0].count);
    const loads = () => [awake.fleet.counts.loads, asleep.fleet.counts.loads];
    const refresh = async (...of: Service[]) => {
      await allEnded(client);
      for (const service of of) await assertTrue(service, 'the fleet is true');
    };
    const prune = async () => {
      const mark = await pruneChanges(awake.database, undefined);
      await pruneChanges(awake.database, mark);
    };
    // Every start of a service writes to the log.
    await allEnded(client);
    await prune();
    await refresh(awake, asleep);
    const [a = 0, b = 0] = loads();

    const earlier = await pruneChanges(awake.database, undefined);
    await insert('after the mark');
    await pruneChanges(awake.database, earlier);
    assert.equal(await logged(), 1, 'rows after the mark stay');
    await refresh(awake);
    await prune();
    assert.equal(await logged(), 0);
    await insert('after the prune');
    await refresh(awake);
    assert.deepEqual(loads(), [a, b], 'this fleet had read the pruned rows');
    await refresh(asleep);
    assert.deepEqual(loads(), [a, b + 1], 'this fleet had not read them');

    await insert('seen by both');
    await refresh(awake, asleep);
    for (let i = 0; i < 3; i++) {
      await client.query('select pg_current_xact_id()');
      await prune();
    }
    await refresh(asleep);
    assert.deepEqual(loads(), [a, b + 1], 'without further changes no fleet falls behind, however much time passes');

    await client.query('begin');
    await insert('in a long transaction');
    const mark = await pruneChanges(awake.database, undefined);
    await asleep.fleet.fresh();
    await client.query('commit');
    await pruneChanges(awake.database, mark);
    await refresh(asleep);
    assert.deepEqual(loads(), [a, b + 1], 'rows of a transaction that was open at the mark are not pruned');
    assert.ok(asleep.fleet.known.byName.has('in a long transaction'));
  });
});

/**
 * Waits until all present transactions have ended, also in other databases of the server, because they delay the marks.
 */
async function allEnded(client: pg.Client): Promise<void> {
  const { rows } = await client.query('select pg_snapshot_xmax(pg_current_snapshot())::text as next');
  for (;;) {
    const ended = await client.query('select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as yes', [
      rows[0].next,
    ]);
    if (ended.rows[0].yes) return;
    await sleep(10);
  }
}
