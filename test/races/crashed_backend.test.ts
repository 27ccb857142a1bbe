/**
 * A process of PostgreSQL is killed, and the server recovers. What was not in its write-ahead log yet is lost, and the numbers of these
 * transactions are assigned again. No process may take what they write for something that it has read already.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type FleetSnapshot, readFleetSnapshot } from '../../db/fleet/change_log.ts';
import { backfillEtags } from '../../db/online/backfill_etags.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { openService } from '../../src/start/service.ts';
import { followFrom } from '../changes/follow.ts';
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { createDatabase, execute, majorVersion } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { type CrashableServer, nextXid, rollBack, startCrashableServer } from './crashable_server.ts';
import { claim as claimOfTwo } from './judged_claim.ts';
import { providersAndOwners } from './two_connections.ts';

let server: CrashableServer;
before(async () => {
  server = await startCrashableServer();
});
after(() => server.stop());

/** Skips a test on PostgreSQL 14, which does not tell of a crash. */
const tellingOfCrashes = (run: () => Promise<void>) => async (t: TestContext) => {
  if ((await majorVersion(server.url)) < 15) t.skip('PostgreSQL 14 does not tell of a crash');
  else await run();
};

type Two = {
  /** The URL of the database. */
  readonly url: string;
  readonly first: Send;
  readonly second: Send;
  /** Has room for 10 VCPU, and no allocations. */
  readonly host: string;
};

/** Calls back with two services on one database, as two processes have them. */
async function withTwoServices(use: (two: Two) => Promise<void>, synchronousCommit = 'on'): Promise<void> {
  const { url, drop } = await createDatabase(server.url);
  await execute(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = ${synchronousCommit}`);
  const open = () => openService(testConfig({ placementDatabase: { connection: url, syncOnStartup: true } }));
  const services = [await open(), await open()] as const;
  try {
    const [first, second] = [requestsTo(services[0]), requestsTo(services[1])];
    const host = randomUUID();
    await makeProvider(first, host, { VCPU: { total: 10 } });
    // Then both know the host, and the owners of the claims.
    for (const send of [first, second]) {
      const consumer = randomUUID();
      accepted(await claim(send, host, 1, consumer));
      accepted(await send('DELETE', `/allocations/${consumer}`));
    }
    await use({ url, first, second, host });
  } finally {
    for (const service of services) await service.close();
    await drop();
  }
}

const claim = (send: Send, host: string, amount: number, consumer = randomUUID()) =>
  send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: amount } }));

/** Claims as soon as the service reaches the database again. */
const claimAfterCrash = (send: Send, host: string, amount: number, consumer = randomUUID()): Promise<void> =>
  until('a claim is written after the crash', async () => {
    const { status, text } = await claim(send, host, amount, consumer);
    assert.ok(status === 204 || status === 503, text);
    return status === 204;
  });

async function usedOf(send: Send, host: string): Promise<unknown> {
  const { json } = accepted(await send('GET', `/resource_providers/${host}/usages`));
  return at(json, 'usages', 'VCPU');
}

/** The newest transaction in the change log. */
const newestXid = async (url: string): Promise<bigint> =>
  BigInt((await execute(url, 'select xid::text from provider_changes order by xid desc limit 1')).rows[0].xid);

/** What uses up numbers of transactions without rows in the change log. */
const ways: Readonly<Record<string, (two: Two) => Promise<void>>> = {
  'a rename to a taken name that was rolled back': async ({ second, host }) => {
    const other = randomUUID();
    await makeProvider(second, other, {});
    for (let renames = 0; renames < 10; renames += 1) {
      const { status } = await second('PUT', `/resource_providers/${other}`, { name: host });
      assert.equal(status, 409);
    }
  },
  'a transaction of another database that was rolled back': () => rollBack(server.url, 10),
};

for (const [way, use] of Object.entries(ways)) {
  test(`a claim after a crash is read, although its transaction has the number of ${way}`, () =>
    withTwoServices(async (two) => {
      const { url, first, second, host } = two;
      const crash = await server.loseInCrash();
      await use(two);
      const feed = await followFrom((method, path, body) => first(method, path, body, `placement ${newestVersion}`));
      assert.equal(await usedOf(first, host), 0);
      const next = await nextXid(server);
      await crash();
      const consumer = randomUUID();
      await claimAfterCrash(second, host, 10, consumer);
      assert.ok((await newestXid(url)) < next, 'its number was not given again: this test proves nothing');
      await rollBack(url, 30); // else the first service notices that numbers are missing

      assert.equal((await claim(first, host, 1)).status, 409);
      assert.equal(await usedOf(first, host), 10);
      assert.deepEqual(await feed(), [{ resource_provider: host, parts: ['usages'] }]);
      accepted(await first('DELETE', `/allocations/${consumer}`));
      for (const send of [first, second]) assert.equal(await usedOf(send, host), 0);
    }));
}

test(
  'with synchronous_commit = off: a claim that was read and lost in the crash is not taken for the new transaction with its number',
  tellingOfCrashes(() =>
    withTwoServices(async ({ url, first, second, host }) => {
      const feed = await followFrom((method, path, body) => first(method, path, body, `placement ${newestVersion}`));
      const crash = await server.loseInCrash();
      for (let claims = 0; claims < 6; claims += 1) accepted(await claim(second, host, 1));
      assert.equal(await usedOf(first, host), 6);
      assert.deepEqual(await feed(), [{ resource_provider: host, parts: ['usages'] }]);
      const lost = await newestXid(url);
      await crash();
      await claimAfterCrash(second, host, 7);
      assert.ok((await newestXid(url)) <= lost, 'its number was not given again: this test proves nothing');
      await rollBack(url, 30);

      assert.equal((await claim(first, host, 4)).status, 409);
      assert.equal(await usedOf(first, host), 7);
      // Also when the log is as long again as it was.
      for (let trait = 0; (await newestXid(url)) <= lost; trait += 1)
        accepted(await second('PUT', `/traits/CUSTOM_${trait}`));
      await feed.isExpired();
      accepted(await claim(first, host, 3));
      for (const send of [first, second]) assert.equal(await usedOf(send, host), 10);
    }, 'off'),
  ),
);

/** Calls back with a database on the server. `open` opens it; all are closed in the end. */
async function withDatabase(use: (url: string, open: () => Promise<Database>) => Promise<void>): Promise<void> {
  const { url, drop } = await createDatabase(server.url);
  const opened: Database[] = [];
  const open = async (): Promise<Database> => {
    const database = await openDatabase({ connection: url, maxPoolSize: 2 });
    opened.push(database);
    return database;
  };
  try {
    await migrateToLatest(await open());
    await use(url, open);
  } finally {
    for (const database of opened) await database.close();
    await drop();
  }
}

test(
  'a crash is another run of the server: a claim that was judged before loses its guard',
  tellingOfCrashes(() =>
    withDatabase(async (url, open) => {
      await execute(url, providersAndOwners);
      const database = await open();
      const judgedOn = await readFleetSnapshot(database.kysely);
      const write = async (consumer: string, snapshot: FleetSnapshot) =>
        (await writeClaims(await open(), [claimOfTwo([consumer])], { judgedOn: snapshot })).lost;
      assert.deepEqual(await write('first', judgedOn), [undefined]);
      await execute(url, 'update resource_providers set generation = 5');
      await (await server.loseInCrash())();
      assert.deepEqual(await write('second', judgedOn), ['provider']);
      const now = await readFleetSnapshot((await open()).kysely);
      assert.deepEqual(await write('second', now), [undefined]);
      assert.equal((await readFleetSnapshot((await open()).kysely)).serverRun, now.serverRun);
    }),
  ),
);

test('rows that the migration of entity tags logs are on the disk before other processes read them', () =>
  withDatabase(async (url, open) => {
    const database = await open();
    await sql`insert into resource_classes (name) values ('CUSTOM_OLD')`.execute(database.kysely);
    await sql`update resource_classes set etag = null`.execute(database.kysely);
    const crash = await server.loseInCrash();
    const migration = backfillEtags(database);
    while ((await migration.runBatch(10)).found > 0);
    const newest = await newestXid(url);
    await crash();
    assert.equal(await newestXid(url), newest);
  }));

const noPgbouncer = hasPgbouncer() ? false : 'pgbouncer is not installed';

test(
  'behind PgBouncer, which keeps the connections of clients, the run of the server shows a crash',
  { skip: noPgbouncer },
  tellingOfCrashes(() =>
    withDatabase(async (url) => {
      const pgbouncer = await startPgbouncer(url, {});
      const database = await openDatabase({ connection: pgbouncer.url, maxPoolSize: 2, preparedStatements: false });
      try {
        const fleet = await openFleet(database);
        await (await server.loseInCrash())();
        await until('PgBouncer reaches the server again', () =>
          execute(pgbouncer.url, 'select 1').then(
            () => true,
            () => false,
          ),
        );
        await fleet.fresh();
        assert.deepEqual([fleet.counts.loads, database.breaks.count], [2, 0]);
        await pgbouncer.stop();
        await until('all connections broke', () => database.connections().open === 0);
        assert.equal(database.breaks.count, 0, 'a connection to a pooler says nothing of the server');
      } finally {
        await database.close();
        await pgbouncer.stop();
      }
    }),
  ),
);
