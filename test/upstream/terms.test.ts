/** Terms on a database that the real OpenStack Placement serves as well: it knows no terms, and agrees on all usages. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { runToEnd } from '../manage/commands.ts';
import { detailOf, succeed } from '../races/client.ts';
import { checkIntegrity } from '../races/consistency.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, type FreshDatabase } from '../support/postgresql.ts';
import { at, newClaim } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

const [host, otherHost] = [randomUUID(), randomUUID()];

suite('terms beside OpenStack Placement', () => {
  let database: FreshDatabase;
  let upstream: Upstream;
  let ours: ServerProcess;

  before(async () => {
    database = await createDatabase(await postgresqlServer());
    await upstreamDbSync(database.url);
    const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: database.url });
    assert.equal(sync.code, 0, sync.stderr);
    upstream = await startUpstream(database.url);
    ours = await startServer({ connection: database.url });
    for (const uuid of [host, otherHost]) {
      await succeed(ours.client, 'POST', '/resource_providers', 38, { uuid, name: uuid });
      const inventories = { VCPU: { total: 100_000 }, DISK_GB: { total: 100_000 } };
      const stock = { resource_provider_generation: 0, inventories };
      await succeed(ours.client, 'PUT', `/resource_providers/${uuid}/inventories`, 38, stock);
    }
  });

  after(async () => {
    await ours?.kill();
    await upstream?.stop();
    await database?.drop();
  });

  const claim = newClaim({ [host]: { VCPU: 2, DISK_GB: 5 }, [otherHost]: { VCPU: 1 } });

  /** Makes consumers of 4 VCPU and 5 GB with terms. */
  const claimFor = async (seconds: number, count: number): Promise<readonly string[]> => {
    const consumers = Array.from({ length: count }, () => randomUUID());
    const body = Object.fromEntries(consumers.map((consumer) => [consumer, { ...claim, expires_in: seconds }]));
    await succeed(ours.client, 'POST', '/allocations', 45, body);
    return consumers;
  };

  /** The generation of a consumer that has allocations, the same from both services. */
  const generationOf = async (consumer: string): Promise<unknown> => {
    const [theirs, own] = await Promise.all(
      [upstream.client, ours.client].map((client) => succeed(client, 'GET', `/allocations/${consumer}`, 38)),
    );
    assert.deepEqual(own, theirs);
    return at(own, 'consumer_generation');
  };

  /** The usages of both hosts, the same from both services. */
  const usages = async (): Promise<readonly unknown[]> => {
    const found: unknown[] = [];
    for (const uuid of [host, otherHost]) {
      const [theirs, own] = await Promise.all(
        [upstream.client, ours.client].map((client) =>
          succeed(client, 'GET', `/resource_providers/${uuid}/usages`, 38),
        ),
      );
      assert.deepEqual(own, theirs);
      found.push(at(own, 'usages'));
    }
    const total = await Promise.all(
      [upstream.client, ours.client].map((client) => succeed(client, 'GET', '/usages?project_id=p', 37)),
    );
    assert.deepEqual(total[0], total[1]);
    return found;
  };

  const usedBy = (consumers: number): readonly unknown[] => [
    { VCPU: 2 * consumers, DISK_GB: 5 * consumers },
    { VCPU: consumers, DISK_GB: 0 },
  ];

  const termOf = async (consumer: string): Promise<unknown> =>
    at(await succeed(ours.client, 'GET', `/consumers/${consumer}`, 45), 'expires_at');

  test('both services agree on usages before and after terms expire, and a consumer that upstream rewrites has no term', async () => {
    const consumers = await claimFor(3600, 280);
    const [rewritten = '', together = '', cleared = '', again = ''] = consumers;
    assert.deepEqual(await usages(), usedBy(280));
    const rewrite = { ...claim, consumer_generation: 1 };
    await succeed(upstream.client, 'PUT', `/allocations/${rewritten}`, 38, rewrite);
    await succeed(upstream.client, 'POST', '/allocations', 38, { [together]: rewrite });
    await succeed(upstream.client, 'DELETE', `/allocations/${cleared}`, 38);
    await succeed(upstream.client, 'DELETE', `/allocations/${again}`, 38);
    await succeed(upstream.client, 'PUT', `/allocations/${again}`, 38, claim);
    const lasting = [rewritten, together, again];
    for (const consumer of lasting) assert.equal(await termOf(consumer), null);
    assert.deepEqual(await usages(), usedBy(279));
    const ending = consumers.filter((consumer) => consumer !== cleared && !lasting.includes(consumer));
    const soon = { expires_in: 1, consumer_generation: 1 };
    await Promise.all(ending.map((consumer) => succeed(ours.client, 'PUT', `/consumers/${consumer}/term`, 45, soon)));
    const left = async (): Promise<number> => (await ours.query('select from consumers')).length;
    await until('the others are gone', async () => (await left()) === lasting.length);
    assert.deepEqual(await usages(), usedBy(lasting.length));
    for (const consumer of consumers)
      assert.equal((await generationOf(consumer)) !== undefined, lasting.includes(consumer));
    await checkIntegrity(ours.query);
    for (const consumer of lasting) await succeed(upstream.client, 'DELETE', `/allocations/${consumer}`, 38);
  });

  test('either a claim of upstream at the time a term expires or the removal wins', async (t) => {
    const [won, lost]: [string[], string[]] = [[], []];
    for (let round = 0; round < 10 || won.length === 0 || lost.length === 0; round += 1) {
      assert.ok(round < 60, `${won.length} won, ${lost.length} lost`);
      const begunMs = performance.now();
      const consumers = await claimFor(2, 30);
      // The removal comes up to a second after the end. Upstream rewrites some consumers before it and some after it.
      await Promise.all(
        consumers.map(async (consumer, index) => {
          await sleep(Math.max(0, begunMs + 1_900 + 40 * index - performance.now()));
          const rewrite = { ...claim, consumer_generation: 1 };
          const reply = await upstream.client.send('PUT', `/allocations/${consumer}`, 38, rewrite);
          if (reply.status !== 204) assert.equal(reply.status, 409, detailOf(reply));
          (reply.status === 204 ? won : lost).push(consumer);
        }),
      );
    }
    t.diagnostic(`${won.length} claims won, ${lost.length} lost`);
    await until('no term is left', async () => (await ours.query('select from consumer_terms')).length === 0);
    const stored = await ours.query('select uuid from consumers');
    assert.deepEqual(stored.map(({ uuid }) => uuid).toSorted(), won.toSorted());
    assert.deepEqual(await usages(), usedBy(won.length));
    for (const consumer of won) assert.equal(await termOf(consumer), null);
    await checkIntegrity(ours.query);
  });
});
