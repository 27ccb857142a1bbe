/** Claims that wait beside others: beside claims that have a consumer in common, and beside claims that locks hold up. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, makeProvider } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { host, type TestedService, withTestedServices } from './scene.ts';

/** More than a claim needs that lets no other go first; one that does lets them up to 200 times. */
const mostMeanwhile = 50;

/** How many claims and releases of another host, one after the other, are answered before this is. */
async function answeredMeanwhile({ send }: TestedService, answer: Promise<unknown>): Promise<number> {
  const consumer = randomUUID();
  let isAnswered = false;
  const noted = answer.then(() => {
    isAnswered = true;
  });
  for (let count = 0; ; count += 1) {
    if (isAnswered) {
      await noted;
      return count;
    }
    accepted(await send('PUT', `/allocations/${consumer}`, plain(other)));
    accepted(await send('DELETE', `/allocations/${consumer}`));
  }
}

const other = randomUUID();
const plain = (provider: string): object => ({
  allocations: { [provider]: { resources: { VCPU: 1 } } },
  project_id: 'others',
  user_id: 'ada',
  consumer_type: 'JOB',
  consumer_generation: null,
});

test('a claim does not wait for an earlier claim that is blocked behind a plain claim with a locked provider', () =>
  withTestedServices(anyEngine, {}, async (tested) => {
    const { send, claim, take, release, untilListed, service } = tested;
    const locked = randomUUID();
    await makeProvider(send, locked, { VCPU: { total: 100 } });
    await makeProvider(send, other, { VCPU: { total: 100 } });
    const [held, consumer] = [await take(4), randomUUID()];
    const first = claim({ uuid: consumer, amount: 4, wait: 60 });
    await untilListed(1);
    let stuck: Promise<unknown> = Promise.resolve();
    await service.database.kysely.transaction().execute(async (holder) => {
      await sql`select id from resource_providers where uuid = ${locked} for update`.execute(holder);
      stuck = send('PUT', `/allocations/${consumer}`, plain(locked));
      const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await until(
        'it waits for the lock',
        async () => (await waiting.execute(service.database.kysely)).rows.length > 0,
      );
      await release(held);
      await sleep(200);
      const meanwhile = await answeredMeanwhile(tested, claim({ query: `resources=VCPU:1&in_tree=${other}` }));
      assert.ok(meanwhile < mostMeanwhile, `${meanwhile} other claims and releases were answered before it`);
    });
    await stuck;
    assert.equal((await first).status, 409);
  }));

const lockHost = (): RawBuilder<unknown> => sql`select id from resource_providers where uuid = ${host} for update`;
const insertConsumer = (uuid: string): RawBuilder<unknown> =>
  sql`insert into consumers (uuid, project_id, user_id, generation) values (${uuid}, 1, 1, 0)`;

for (const [what, lock] of [
  ['the host', lockHost],
  ['its own record', insertConsumer],
] as const)
  for (const line of ['gpu', undefined])
    test(`claims may pass one ${line === undefined ? 'without' : 'of'} a line that waits for a lock of ${what}`, () =>
      withTestedServices(anyEngine, {}, async (tested) => {
        const { send, claim, service } = tested;
        await makeProvider(send, other, { VCPU: { total: 100 } });
        accepted(await claim({ wait: '' }));
        const [stuck, ofLine] = [randomUUID(), line === undefined ? {} : { line }];
        let first: Promise<unknown> = Promise.resolve();
        await service.database.kysely.transaction().execute(async (holder) => {
          await lock(stuck).execute(holder);
          first = claim({ uuid: stuck, ...ofLine });
          await sleep(300);
          for (const its of [{}, { line: 'another' }]) {
            const next = claim({ query: `resources=VCPU:1&in_tree=${other}`, ...its });
            const meanwhile = await answeredMeanwhile(tested, next);
            assert.ok(meanwhile < mostMeanwhile, `${meanwhile} other claims and releases were answered before it`);
          }
          await sql`delete from consumers where uuid = ${stuck}`.execute(holder);
        });
        await first;
      }));
