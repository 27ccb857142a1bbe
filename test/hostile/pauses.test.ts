/** No request holds the process for long, however wide it is: others have their turns. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import pg from 'pg';
import type { PlacementService } from '../../src/start/service.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { openServiceOn } from '../support/services.ts';
import { queryText } from './bodies.ts';
import { type Wide, widest } from './widest.ts';

/** How long the event loop stood still, at most, and how long the work took: CPU time of this thread, in milliseconds. */
type Pause = { readonly longestMs: number; readonly totalMs: number };

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/**
 * Does work, and sees how long others had to wait for their turn at most. It is CPU time, so that a machine which does other work
 * meanwhile does not count.
 */
async function longestPause<Result>(work: () => Promise<Result>): Promise<Pause & { readonly result: Result }> {
  let isOver = false;
  let longestMs = 0;
  const startedMs = cpuMs();
  let lastMs = startedMs;
  const look = (): void => {
    const nowMs = cpuMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  try {
    const result = await work();
    look();
    return { longestMs, totalMs: cpuMs() - startedMs, result };
  } finally {
    isOver = true;
  }
}

/** The aim is 50 ms; the machine that tests may be some times slower than usual, and collects garbage meanwhile. */
const mostMs = 250;

/** A request may work for 5 s, and the machine may be slow. */
const mostWork = 15_000;

/** Fits on no host, which only trying all ways shows. */
const tooWide = 'one candidate: groups that seem to fit on each of many hosts';

/** Hosts with eight devices of eight each, one tree of 2,000 devices, and a pool that shares with all; all in three aggregates. */
const wideFleet = `
  select set_config('placement.etags', 'providers', false);
  insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id)
    select host * 9 + child, md5('p' || host * 9 + child)::uuid::text, 'p' || host * 9 + child, 0, host * 9,
      case when child > 0 then host * 9 end
    from generate_series(1, 2000) as host, generate_series(0, 8) as child;
  insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id)
    select 100000 + n, md5('p' || 100000 + n)::uuid::text, 'p' || 100000 + n, 0, 100000, case when n > 0 then 100000 end
    from generate_series(0, 2000) as n;
  insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select p.id, c.id, 8, 0, 1, 8, 1, 1 from resource_providers p, resource_classes c
    where c.name = case when p.parent_provider_id is null then 'VCPU' else 'SRIOV_NET_VF' end;
  insert into traits (name) values ('CUSTOM_HELD'), ('CUSTOM_RARE');
  insert into resource_providers (id, uuid, name, generation, root_provider_id)
    values (200000, md5('pool')::uuid::text, 'pool', 0, 200000);
  insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select 200000, c.id, 5000, 0, 1, 5000, 1, 1 from resource_classes c where c.name = 'DISK_GB';
  insert into resource_provider_traits (resource_provider_id, trait_id)
    select p.id, t.id from resource_providers p, traits t
    where t.name = 'CUSTOM_HELD' or p.name = 'pool' and t.name = 'MISC_SHARES_VIA_AGGREGATE';
  insert into placement_aggregates (id, uuid)
    select n, '00000000-0000-4000-8000-' || lpad(n::text, 12, '0') from generate_series(1, 3) as n;
  insert into resource_provider_aggregates (resource_provider_id, aggregate_id)
    select p.id, n from resource_providers p, generate_series(1, 3) as n;`;

/** What random queries are sent to. */
const reads = [
  'allocation_candidates',
  'allocation_candidates/explanation',
  'allocation_candidates/count',
  'resource_providers',
  'provider_summaries',
] as const;

/** Some queries have more candidates than can be sent in years: the client leaves after so many bytes. */
const mostBytes = 20e6;

/** The status of an answer and its first bytes. The rest is dropped, since storing it takes time as well. */
async function answerTo(
  { app }: Pick<PlacementService, 'app'>,
  { method = 'GET', path, body }: Wide,
): Promise<{ readonly status: number; readonly start: string }> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.6' };
  const response = await app.request(
    path,
    body === undefined
      ? { method, headers }
      : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) },
  );
  const reader = response.body?.getReader();
  const first = await reader?.read();
  let bytes = 0;
  for (let more = first; more !== undefined && !more.done && bytes < mostBytes; more = await reader?.read()) {
    bytes += more.value.length;
  }
  await reader?.cancel();
  return { status: response.status, start: Buffer.from(first?.value ?? []).toString('utf8', 0, 1_000) };
}

suite('the widest requests', () => {
  test('hostile queries let other requests continue, and are refused if they work for too long without a result', async (t) => {
    await withFreshDatabase('postgresql', async (fresh) => {
      if (!('connection' in fresh.settings)) throw new Error('The fleet is loaded by SQL into a PostgreSQL server.');
      const client = new pg.Client({ connectionString: fresh.settings.connection });
      await client.connect();
      await client.query(wideFleet);
      await client.end();
      const service = await openServiceOn(fresh);
      try {
        await answerTo(service, { what: 'the first', path: '/allocation_candidates?resources=VCPU:1&limit=1' });
        for (const wide of widest) {
          const { longestMs, totalMs, result } = await longestPause(() => answerTo(service, wide));
          const { what } = wide;
          const figures = `${what}: ${result.status}, longest ${longestMs.toFixed(0)} ms of ${totalMs.toFixed(0)} ms`;
          t.diagnostic(figures);
          assert.ok([200, 204, 400, 409].includes(result.status), `${figures} ${result.start}`);
          assert.ok(longestMs < mostMs, figures);
          // Without a limit there may be candidates for years.
          if (!what.startsWith('candidates')) assert.ok(totalMs < mostWork, figures);
          if (what === tooWide) assert.equal(result.status, 400, figures);
        }
        const random = randomFrom(seedFor(t));
        let longest = { ms: 0, path: '' };
        for (let count = 0; count < 500; count += 1) {
          const path = `/${random.pick(reads)}?${queryText(random)}&resources=VCPU:1`;
          const { longestMs, result } = await longestPause(() => answerTo(service, { what: '', path }));
          assert.ok(result.status < 500, `${path}: ${result.status} ${result.start}`);
          if (longestMs > longest.ms) longest = { ms: longestMs, path };
        }
        t.diagnostic(`random queries: longest ${longest.ms.toFixed(0)} ms, ${longest.path}`);
        assert.ok(longest.ms < mostMs, `${longest.path}: ${longest.ms} ms in one piece`);
      } finally {
        await service.close();
      }
    });
  });
});
