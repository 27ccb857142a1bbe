/**
 * Writes at the end of a term, through two processes, while the consumer is removed. Either the write or the removal
 * wins: an acknowledged write stays, and a refused one leaves nothing.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { isLockRefused, isLostRace } from '../../db/engine/failures.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { type Client, detailOf, succeed } from '../races/client.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { newClaim } from '../support/requests.ts';
import { until } from '../support/until.ts';

/** The number of contests; `CONTESTS=10000` for more. */
const contests = Number(process.env.CONTESTS ?? 1000);
const perRound = 40;
/** The number of rounds at the same time. */
const lanes = 3;
/** The largest time between a write and the end of the term, in milliseconds. */
const spreadMs = 12;

const host = '00000000-0000-4000-8000-0000000000aa';

/** A write of a consumer at generation 1, and the status that it gets if the consumer was removed. */
type Write = { readonly refusedBy: number; send(client: Client, consumer: string): ReturnType<Client['send']> };

const claim = newClaim({ [host]: { VCPU: 1 } });

const writes: readonly Write[] = [
  {
    refusedBy: 404,
    send: (client, consumer) =>
      client.send('PUT', `/consumers/${consumer}/term`, '2.6', { expires_in: 3600, consumer_generation: 1 }),
  },
  {
    refusedBy: 404,
    send: (client, consumer) =>
      client.send('PUT', `/consumers/${consumer}/term`, '2.6', { expires_in: null, consumer_generation: 1 }),
  },
  {
    refusedBy: 409,
    send: (client, consumer) =>
      client.send('PUT', `/allocations/${consumer}`, 39, { ...claim, consumer_generation: 1 }),
  },
];

/** Removes ended consumers every few milliseconds, until it is stopped. */
function removeAgainAndAgain(database: Database): () => Promise<void> {
  let stopped = false;
  const running = (async () => {
    while (!stopped) {
      try {
        await removeEnded(database, firstPosition, 64);
      } catch (error) {
        if (!isLockRefused(error) && !isLostRace(error)) throw error;
      }
      await sleep(3);
    }
  })();
  return async () => {
    stopped = true;
    await running;
  };
}

test(`either a write at the time a term expires or the removal wins, never both, in ${contests} contests`, async (t) => {
  const random = randomFrom(seedFor(t));
  await withFreshDatabase('postgresql', async ({ config, settings }) => {
    const servers: readonly ServerProcess[] = [await startServer(config), await startServer(config)];
    const database = await openDatabase(settings);
    const other = new pg.Pool({ connectionString: config.connection, max: lanes });
    const stops = [removeAgainAndAgain(database), removeAgainAndAgain(database)];
    const won = new Set<string>();
    const lost: string[] = [];
    /** The mean time from a write to the end of the term. It is adjusted so that about half of the writes win. */
    let leadMs = 20;
    const contest = async (consumer: string, endsAtMs: number): Promise<void> => {
      await sleep(endsAtMs - leadMs + (random.below(2 * spreadMs * 100) / 100 - spreadMs) - Date.now());
      const { client } = random.pick(servers);
      const write = random.pick(writes);
      const reply = await write.send(client, consumer);
      if (reply.status < 300) won.add(consumer);
      else {
        assert.equal(reply.status, write.refusedBy, detailOf(reply));
        lost.push(consumer);
      }
    };
    const left = async (): Promise<ReadonlySet<string>> => {
      const { rows } = await other.query('select uuid from consumers');
      return new Set(rows.map(({ uuid }) => uuid));
    };
    try {
      const { client } = random.pick(servers);
      await succeed(client, 'POST', '/resource_providers', '2.6', { uuid: host, name: 'host' });
      const inventories = { VCPU: { total: 10_000_000, max_unit: 1 } };
      const stock = { resource_provider_generation: 0, inventories };
      await succeed(client, 'PUT', `/resource_providers/${host}/inventories`, '2.6', stock);
      let begun = 0;
      const lane = async (): Promise<void> => {
        if (begun >= contests) return;
        begun += perRound;
        const consumers = Array.from({ length: perRound }, () => randomUUID());
        const body = Object.fromEntries(consumers.map((consumer) => [consumer, { ...claim, expires_in: 1 }]));
        await succeed(client, 'POST', '/allocations', '2.6', body);
        const { rows } = await other.query<{ uuid: string; expires_at: Date }>(
          'select uuid, expires_at from consumers c join consumer_terms t on t.consumer_id = c.id where uuid = any($1)',
          [consumers],
        );
        await Promise.all(rows.map(({ uuid, expires_at }) => contest(uuid, expires_at.getTime())));
        leadMs *= 2 ** (0.5 - consumers.filter((uuid) => won.has(uuid)).length / perRound);
        return lane();
      };
      await Promise.all(Array.from({ length: lanes }, lane));
      await until('what was refused is gone', async () => (await left()).size <= won.size);
      assert.deepEqual([...(await left())].toSorted(), [...won].toSorted());
      const { rows } = await other.query(
        'select consumer_id as uuid, count(*)::integer as count from allocations group by 1',
      );
      assert.deepEqual(rows.map(({ uuid }) => uuid).toSorted(), [...won].toSorted());
      assert.ok(rows.every(({ count }) => count === 1));
      t.diagnostic(`${won.size} writes won, ${lost.length} lost, sent ${leadMs.toFixed(1)} ms before the end at last`);
      assert.ok(won.size > contests / 10 && lost.length > contests / 10, `${won.size} won, ${lost.length} lost`);
    } finally {
      for (const stop of stops) await stop();
      await other.end();
      await database.close();
      for (const server of servers) await server.kill();
    }
  });
});
