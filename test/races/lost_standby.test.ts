/** The synchronous standby is down: PostgreSQL answers no commit until it is back, or is not synchronous any more. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { createDatabase, execute, startPostgresql } from '../support/postgresql.ts';
import { accepted, at, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { claim, holdersOn, makeHost, startClaimants, untilClaimed } from './claimants.ts';

const maxPoolSize = 10;

type Place = {
  readonly service: PlacementService;
  readonly send: Send;
  readonly host: string;
  /** Lets PostgreSQL wait for a standby that does not exist, or for none. */
  readonly waitFor: (standby: 'gone' | '') => Promise<void>;
  /** The process ids of the server's backends that serve the service's database. */
  readonly backends: () => Promise<number[]>;
};

async function withService(
  statementTimeout: number,
  use: (place: Place) => Promise<void>,
  atEnd: 'gone' | '' = '',
): Promise<void> {
  const server = await startPostgresql({ settings: { fsync: 'off', synchronous_commit: 'on' } });
  const { url } = await createDatabase(server.url);
  const placementDatabase = {
    ...testConfig().placementDatabase,
    connection: url,
    syncOnStartup: true,
    maxPoolSize,
    statementTimeout,
  };
  const service = await openService(testConfig({ placementDatabase }));
  const waitFor = async (standby: 'gone' | ''): Promise<void> => {
    await execute(server.url, `alter system set synchronous_standby_names = '${standby}'`);
    await execute(server.url, 'select pg_reload_conf()');
  };
  const backends = async (): Promise<number[]> => {
    const name = new URL(url).pathname.slice(1);
    const { rows } = await execute(server.url, `select pid from pg_stat_activity where datname = '${name}'`);
    return rows.map(({ pid }) => pid);
  };
  try {
    const send = requestsTo(service);
    await use({ service, send, host: await makeHost(send), waitFor, backends });
  } finally {
    await waitFor(atEnd);
    await service.close();
    await server.stop();
  }
}

const unconfirmed = /does not confirm commits, its synchronous standby may be gone/;

test('connections stay few while commits are unconfirmed, answers name the reason, and later requests succeed', async () => {
  await withService(4, async ({ service, send, host, waitFor, backends }) => {
    // Several hosts, consumers that are written again, and writes of providers: all of them meet each other's locks.
    const claimants = startClaimants(send, host, 12);
    const second = await makeHost(send);
    const again = randomUUID();
    const reasons = new Map<string, number>();
    let ended = false;
    const note = ({ status, json }: Awaited<ReturnType<Send>>): void => {
      if (status !== 503) return;
      const detail = String(at(json, 'errors', 0, 'detail'));
      reasons.set(detail, (reasons.get(detail) ?? 0) + 1);
    };
    const writer = async (write: () => ReturnType<Send>): Promise<void> => {
      while (!ended) {
        note(await write());
        await sleep(50);
      }
    };
    const writers = [
      ...Array.from({ length: 4 }, () => writer(() => claim(send, second, again))),
      ...Array.from({ length: 4 }, () => writer(() => claim(send, second, randomUUID()))),
      writer(() => send('DELETE', `/allocations/${again}`)),
      writer(() => send('POST', '/resource_providers', { name: randomUUID(), uuid: randomUUID() })),
      writer(() => send('PUT', `/traits/CUSTOM_${randomUUID().replaceAll('-', '').toUpperCase()}`)),
      writer(() => send('PUT', `/resource_providers/${second}`, { name: randomUUID() })),
    ];
    try {
      await untilClaimed(claimants, 50);
      await waitFor('gone');
      // A closed connection may take a moment to end, and its successor is there already: only backends that live on count.
      let most = 0;
      const looks: number[][] = [];
      // Three times as long as a statement may take, so that requests have failed, and later requests have come.
      for (const endMs = performance.now() + 14_000; performance.now() < endMs; await sleep(250)) {
        looks.push(await backends());
        const last = looks.slice(-8);
        if (last.length === 8)
          most = Math.max(most, last.reduce((alive, now) => alive.filter((pid) => now.includes(pid))).length);
        accepted(await send('GET', `/resource_providers/${host}/usages`));
        accepted(await send('GET', `/allocations/${again}`));
        accepted(await send('GET', '/allocation_candidates?resources=VCPU:1&limit=1'));
      }
      assert.ok(most <= maxPoolSize + 1, `${most} backends for two seconds`);
      const probe = await send('GET', '/readyz');
      assert.deepEqual(
        [probe.status, probe.text],
        [503, 'The database does not confirm commits; its synchronous standby may be gone'],
      );
      const late = await claim(send, host, randomUUID());
      assert.equal(late.status, 503);
      assert.match(String(at(late.json, 'errors', 0, 'detail')), unconfirmed);
      assert.ok(reasons.size > 0);
      assert.deepEqual(
        [...reasons.keys()].filter((reason) => !unconfirmed.test(reason)),
        [],
      );

      await waitFor('');
      await untilClaimed(claimants, 50);
      await until('it is ready', async () => (await send('GET', '/readyz')).status === 200);
    } finally {
      ended = true;
      await waitFor('');
      await Promise.all(writers);
      await claimants.stop();
    }
    const holders = new Set(await holdersOn(send, host));
    assert.deepEqual(
      claimants.acknowledged.filter((consumer) => !holders.has(consumer)),
      [],
    );
    await until('no connection is kept for a request that was given up', () => {
      const { open, idle } = service.database.connections();
      return idle === open;
    });
  });
});

test('a standby that is unavailable for a short time causes no 503', async () => {
  await withService(30, async ({ send, host, waitFor }) => {
    const claimants = startClaimants(send, host, 12);
    try {
      for (let round = 0; round < 2; round += 1) {
        await untilClaimed(claimants, 50);
        await waitFor('gone');
        await sleep(1_500);
        await waitFor('');
      }
      await untilClaimed(claimants, 50);
    } finally {
      await waitFor('');
      await claimants.stop();
    }
    assert.deepEqual([...claimants.statuses.keys()], [204]);
  });
});

test('a service ends, although commits are unconfirmed', async () => {
  const isUnconfirmed = async ({ send, host, waitFor }: Place): Promise<void> => {
    await waitFor('gone');
    // PostgreSQL reads its configuration a little later: until then claims are written.
    await until('a claim is unconfirmed', async () => (await claim(send, host, randomUUID())).status === 503);
  };
  await withService(2, isUnconfirmed, 'gone');
});
