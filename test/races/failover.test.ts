/** The primary is killed under load. A standby takes over at the same address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { isReadOnly } from '../../db/engine/failures.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { createDatabase, databaseUrl, execute, type PostgresqlServer } from '../support/postgresql.ts';
import { at, newestVersion, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { type Claimants, holdersOn, makeHost, startClaimants, untilClaimed } from './claimants.ts';
import { formOf } from './fleet_form.ts';
import { cutOff, killServer, promote, requireStandby, startPrimary, startStandby } from './standby.ts';
import { openSwitch, type Switch } from './switch.ts';

type Failover = {
  readonly service: PlacementService;
  readonly send: Send;
  readonly host: string;
  readonly claimants: Claimants;
  readonly primary: PostgresqlServer;
  readonly standby: PostgresqlServer;
  /** Runs a statement on the standby, in the database of the service. */
  readonly askStandby: (statement: string) => Promise<readonly Record<string, unknown>[]>;
  /** The address that the service connects to. */
  readonly address: Switch;
};

const clients = 8;
const portOf = ({ url }: PostgresqlServer): number => Number(new URL(url).port);

/** Calls back with a service under load on a primary with a standby. */
async function withStandby(use: (failover: Failover) => Promise<void>): Promise<void> {
  const primary = await startPrimary();
  const name = new URL((await createDatabase(primary.url)).url).pathname.slice(1);
  const standby = await startStandby(primary);
  const askStandby = async (statement: string) => (await execute(databaseUrl(standby.url, name), statement)).rows;
  const address = await openSwitch(portOf(primary));
  const connection = `postgresql://postgres@127.0.0.1:${address.port}/${name}`;
  const service = await openService(testConfig({ placementDatabase: { connection, syncOnStartup: true } }));
  let claimants: Claimants | undefined;
  try {
    const send = requestsTo(service);
    const host = await makeHost(send);
    claimants = startClaimants(send, host, clients);
    await untilClaimed(claimants, 100, 60_000);
    await use({ service, send, host, claimants, primary, standby, askStandby, address });
  } finally {
    await claimants?.stop();
    await service.close();
    address.close();
    await standby.stop();
    await primary.stop();
  }
}

/** The primary dies, the clients reach the standby, and later it is promoted. */
async function failOver({ send, claimants, primary, standby, address }: Failover): Promise<void> {
  await killServer(primary);
  const refused = () => claimants.statuses.get(503) ?? 0;
  await until('the service notices', () => refused() > 0);
  assert.equal((await send('GET', '/healthcheck')).status, 503);
  assert.equal((await send('GET', '/allocation_candidates?resources=VCPU:1')).status, 503);
  address.lead(portOf(standby));
  const before = { refused: refused(), written: claimants.acknowledged.length };
  await until('a standby does not write', () => refused() > before.refused + clients);
  assert.equal(claimants.acknowledged.length, before.written);
  assert.equal((await send('GET', '/readyz')).status, 503);
  await promote(standby);
  await untilClaimed(claimants, clients + 1); // so one of these claims began after the promotion
  await claimants.stop();
  assert.deepEqual([...claimants.statuses.keys()].sort(), [204, 503], 'no other answers');
}

/** The memory of the service and its answers are equal to the data of the new primary. */
async function checkFleet({ service, send, host, askStandby }: Failover): Promise<void> {
  const { fleet, database } = service;
  assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));
  const used = at((await send('GET', `/resource_providers/${host}/usages`)).json, 'usages', 'VCPU');
  assert.deepEqual(await askStandby('select sum(used)::int as used from allocations'), [{ used }]);
}

/** Follows changes of traits, of which claims make none, for a minute at most. @returns the status and the body of the answer */
async function followTraits({ app }: PlacementService, accept: string): Promise<string> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': `placement ${newestVersion}` };
  const now = await app.request('/changes', { headers });
  const path = `/changes?parts=traits&since=${at(await now.json(), 'next')}`;
  const signal = AbortSignal.timeout(60_000);
  const answer = await app.request(path, { headers: { ...headers, accept, prefer: 'wait=60' }, signal });
  return `${answer.status} ${await answer.text()}`;
}

/** Waits until the standby has all acknowledged claims. @returns their number */
async function untilFollowed({ claimants, askStandby }: Failover): Promise<number> {
  const wanted = claimants.acknowledged.slice();
  await until('the standby follows', async () => {
    const there = new Set((await askStandby('select consumer_id as id from allocations')).map(({ id }) => id));
    return wanted.every((consumer) => there.has(consumer));
  });
  return wanted.length;
}

test('with synchronous replication a failover loses no acknowledged claim', async (t) => {
  await withStandby(async (failover) => {
    const { send, host, claimants, primary } = failover;
    await requireStandby(primary);
    await untilClaimed(claimants, 50, 60_000);
    await failOver(failover);
    const holders = new Set(await holdersOn(send, host));
    assert.deepEqual(
      claimants.acknowledged.filter((consumer) => !holders.has(consumer)),
      [],
    );
    await checkFleet(failover);
    t.diagnostic(JSON.stringify(Object.fromEntries(claimants.statuses)));
  });
});

test('with asynchronous replication the service goes back to the data of the standby, and followers read again', async (t) => {
  await withStandby(async (failover) => {
    const { service, send, host, claimants, standby } = failover;
    const followed = await untilFollowed(failover);
    await cutOff(standby);
    await untilClaimed(claimants, 50, 60_000);
    const waiting = followTraits(service, 'application/json');
    const stream = followTraits(service, 'text/event-stream');
    await until('both follow', () => service.followers.size === 2);
    await failOver(failover);
    assert.match(await waiting, /^410 .*"placement.changes_expired"/s, 'what it was told may be lost');
    assert.match(await stream, /\nevent: error\ndata: {"status":410,"code":"placement.changes_expired"}\n\n$/);
    const holders = new Set(await holdersOn(send, host));
    const lost = claimants.acknowledged.flatMap((consumer, index) => (holders.has(consumer) ? [] : [index]));
    assert.ok(lost.length > 0, 'the standby must lack something');
    assert.ok(Math.min(...lost) >= followed, 'claims that had reached it are still there');
    await checkFleet(failover);
    t.diagnostic(`${lost.length} of ${claimants.acknowledged.length} were lost with the primary`);
  });
});

test('a start on a standby ends with what to do', async () => {
  const primary = await startPrimary();
  const standby = await startStandby(primary);
  try {
    const { url } = await createDatabase(primary.url);
    await (await openService(testConfig({ placementDatabase: { connection: url, syncOnStartup: true } }))).close();
    const connection = databaseUrl(standby.url, new URL(url).pathname.slice(1));
    await until('the standby has the traits', () =>
      execute(connection, 'select from traits').then(
        ({ rowCount }) => rowCount !== 0,
        () => false,
      ),
    );
    await assert.rejects(
      openService(testConfig({ placementDatabase: { connection } })),
      /^Error: The database is read-only: it is a standby, .*Name the primary in \[placement_database\] connection/,
    );
    // A load that reaches the standby by a connection of its own, while others lead to the primary, is refused for the same reason.
    const database = await openDatabase({ connection, maxPoolSize: 1 });
    await assert.rejects(loadFleet(database), isReadOnly);
    await database.close();
  } finally {
    await standby.stop();
    await primary.stop();
  }
});
