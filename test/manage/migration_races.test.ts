import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { createIncompleteConsumers } from '../../db/online/create_incomplete_consumers.ts';
import { freshDatabase } from '../support/engines.ts';
import { requestsTo, type Send } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { countStrays, insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';

const owner = { projectId: 'old-project', userId: 'old-user' };

/** Waits until some statement waits for a lock. */
async function untilOneWaits({ kysely }: Database): Promise<void> {
  for (const end = Date.now() + 10_000; Date.now() < end; await sleep(10)) {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(kysely);
    if (rows.length > 0) return;
  }
  throw new Error('No statement waits for a lock.');
}

const nothing = { allocations: {}, project_id: 'p', user_id: 'u' };
const requests: Readonly<Record<string, (consumer: string) => readonly [request: Parameters<Send>, RegExp]>> = {
  'an empty POST': (consumer) => [['POST', '/allocations', { [consumer]: nothing }, 'placement 1.27'], /204/],
  // The client knows no record, but the migration may have made one.
  'an empty PUT': (consumer) => [
    ['PUT', `/allocations/${consumer}`, { ...nothing, consumer_generation: null }, 'placement 1.28'],
    /204|409/,
  ],
  'a DELETE': (consumer) => [['DELETE', `/allocations/${consumer}`, undefined, 'placement 1.28'], /204/],
};

for (const [name, requestFor] of Object.entries(requests)) {
  test(`${name} that waits for the migration of its consumer leaves no record behind`, async () => {
    const fresh = await freshDatabase('postgresql');
    const service = await openServiceOn(fresh);
    const database = await openDatabase(fresh.settings);
    const [consumer = ''] = newUuids(1);
    const provider = await insertOldProvider(database, 'old');
    await insertOldAllocations(database, provider.id, [consumer]);
    const [request, status] = requestFor(consumer);
    // A slow batch of the migration, with its locks and the record that it makes.
    const answer = await database.kysely.transaction().execute(async (batch) => {
      await sql`select from allocations where consumer_id = ${consumer} for key share`.execute(batch);
      await sql`insert into consumers (uuid, project_id, user_id) values (${consumer}, 1, 1)`.execute(batch);
      const answer = requestsTo(service)(...request);
      await untilOneWaits(database);
      return { answer };
    });
    const { status: answered, text } = await answer.answer;
    assert.match(String(answered), status, text);
    assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
    await database.close();
    await service.close();
    await fresh.drop();
  });
}

test('the migration gives way to a claim instead of making a deadlock', async () => {
  const fresh = await freshDatabase('postgresql');
  const database = await openDatabase(fresh.settings);
  const [consumer = ''] = newUuids(1);
  const provider = await insertOldProvider(database, 'old');
  await insertOldAllocations(database, provider.id, [consumer]);
  const batch = await database.kysely.transaction().execute(async (claim) => {
    // The claim makes the record first, and then replaces the allocations.
    await sql`insert into consumers (uuid, project_id, user_id, generation) values (${consumer}, 1, 1, 1)`.execute(
      claim,
    );
    const batch = createIncompleteConsumers(database, owner).runBatch(50);
    await untilOneWaits(database);
    await sql`update allocations set used = 2 where consumer_id = ${consumer}`.execute(claim);
    await sql`delete from allocations where consumer_id = ${consumer}`.execute(claim);
    await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      values (${provider.id}, 0, ${consumer}, 2)`.execute(claim);
    return { batch };
  });
  assert.deepEqual(await batch.batch, { found: 0, done: 0 }, 'the claim has already made the record');
  assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
  await database.close();
  await fresh.drop();
});
