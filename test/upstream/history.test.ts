/** The history of usages of a database that the real OpenStack Placement serves as well, and alone: it knows nothing of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { openService } from '../../src/start/service.ts';
import { openConsumerMirror } from '../changes/consumer_mirror.ts';
import { checkHistory, differences, recordsOf } from '../history/world.ts';
import { runToEnd } from '../manage/commands.ts';
import { buildArena } from '../races/arena.ts';
import { type Client, succeed } from '../races/client.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { newClaim, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { contend } from './contest.ts';
import { runUpstream, startUpstream, upstreamDbSync } from './placement.ts';

test('what OpenStack Placement writes is recorded and reported, beside this service and alone', async (t) => {
  const random = randomFrom(seedFor(t));
  const database = await createDatabase(await postgresqlServer());
  await upstreamDbSync(database.url);
  const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: database.url });
  assert.equal(sync.code, 0, sync.stderr);
  const upstream = await startUpstream(database.url);
  const ours = await startServer({ connection: database.url });
  // A process that starts decides, so this one comes last.
  const config = testConfig({ placementDatabase: { connection: database.url }, history: { enabled: true } });
  let service = await openService(config);
  try {
    const isOn = async () => (await ours.query('select from usage_history where is_complete')).length === 1;
    await until('the history is on', isOn);
    const world = () => ({ send: requestsTo(service, 'placement 2.6'), database: service.database });
    const send = () => requestsTo(service, 'placement 2.9');
    const gone = new Map<string, unknown>();
    const mirror = await openConsumerMirror(send(), (consumer, ended) => gone.set(consumer, ended));

    const arena = await buildArena(upstream.client, random, 3);
    let isOver = false;
    const watching = (async () => {
      for (; !isOver; ) {
        await mirror.follow(send(), send());
        assert.deepEqual(await differences(world()), []);
      }
    })();
    watching.catch(() => {}); // it is awaited below
    await contend([upstream.client, ours.client], arena).finally(() => {
      isOver = true;
    });
    await watching;

    const [first = '', second = ''] = arena.providers;
    await emptyAll([upstream.client, ours.client], await held(ours.query));
    const endsOf = async (consumer: string) =>
      (await recordsOf(world()))
        .filter((record) => record.consumer === consumer)
        .map(({ ended }) => ended)
        .toSorted(byReason);
    const consumer = randomUUID();
    const claim = (on: string, used: number, generation: number | null) =>
      succeed(upstream.client, 'PUT', `/allocations/${consumer}`, 38, {
        ...newClaim({ [on]: { VCPU: used, MEMORY_MB: 1 } }),
        consumer_generation: generation,
      });
    await claim(first, 1, null);
    await claim(first, 2, 1); // the record of the memory continues
    await claim(second, 2, 2);
    assert.deepEqual(await endsOf(consumer), ['rewritten', 'moved', 'moved', null, null].toSorted(byReason));
    await mirror.follow(send(), send());
    await mirror.check(send(), (uuid) => uuid);

    // Upstream alone.
    await ours.kill();
    await service.close();
    await succeed(upstream.client, 'DELETE', `/allocations/${consumer}`, 38);
    await contend([upstream.client], await buildArena(upstream.client, random, 1));
    assert.match(await runUpstream('placement-status', database.url, 'upgrade', 'check'), /Success/);
    await upstreamDbSync(database.url);
    service = await openService(config);
    assert.deepEqual(
      await endsOf(consumer),
      ['rewritten', 'moved', 'moved', 'released', 'released'].toSorted(byReason),
    );
    await checkHistory(world());
    for (let reported = 1; reported > 0; ) reported = await mirror.follow(send(), send());
    await mirror.check(send(), (uuid) => uuid);
    assert.equal(mirror.reads, 1);
    assert.equal(gone.get(consumer), 'released');
  } finally {
    await ours.kill();
    await service.close();
    await upstream.stop();
    await database.drop();
  }
});

/** Records that began together have no order. */
const byReason = (one: string | null, other: string | null): number => String(one).localeCompare(String(other));

async function held(
  query: (statement: string) => Promise<readonly Record<string, unknown>[]>,
): Promise<readonly string[]> {
  return (await query('select distinct consumer_id as id from allocations')).map(({ id }) => String(id));
}

/** Each consumer is deleted by one of the services. */
async function emptyAll(clients: readonly Client[], consumers: readonly string[]): Promise<void> {
  for (const [index, consumer] of consumers.entries()) {
    const client = clients[index % clients.length];
    if (client !== undefined) await succeed(client, 'DELETE', `/allocations/${consumer}`, 38);
  }
}
