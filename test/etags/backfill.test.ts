/** Old rows get their tags while the service serves, and clients that read tags see no difference. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { backfillEtags } from '../../db/online/backfill_etags.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { anyEngine, engines, withFreshDatabase } from '../support/engines.ts';
import { requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { countLacking, insertOldRows } from './old_rows.ts';
import { assertStored } from './stored_tags.ts';

/* The test prints how long the migration takes. The goal is 10 s for ROWS=100000 on an idle machine; by default there are fewer rows. */
const count = Number(process.env.ROWS ?? 20_000);
const rows = { providers: (count * 15) / 100, consumers: (count * 55) / 100 };

test(`${count} old rows get their tags while other requests write`, async (t) => {
  await withCommands('postgresql', 'migrated', async ({ config, configFile, folder, run, withDatabase }) => {
    const sample = await withDatabase(async (database) => {
      await insertOldRows(database, rows);
      assert.equal(await countLacking(database), rows.consumers + rows.providers * 3);
      const providers = await database.kysely.selectFrom('resource_providers').select('uuid').limit(400).execute();
      const consumers = await database.kysely.selectFrom('consumers').select('uuid').limit(400).execute();
      return {
        providers: providers.map(({ uuid }) => uuid),
        consumers: consumers.map(({ uuid }) => uuid),
      };
    });
    const service = await openServiceOn({ settings: { connection: '', maxPoolSize: 1 }, config, drop: async () => {} });
    const send = requestsTo(service, 'placement 2.1');
    const request = async (method: string, path: string, body?: object) => {
      const { request, status, headers } = await send(method, path, body);
      assert.ok(status < 300 || status === 409, `${request}: ${status}`);
      return headers.get('etag');
    };
    const read = sample.consumers
      .slice(0, 50)
      .map((uuid) => `/allocations/${uuid}`)
      .concat(
        sample.providers
          .slice(0, 50)
          .flatMap((uuid) =>
            ['', '/inventories', '/inventories/VCPU', '/traits', '/aggregates'].map(
              (part) => `/resource_providers/${uuid}${part}`,
            ),
          ),
      );
    const readAll = async () => Promise.all(read.map((path) => request('GET', path)));
    const before = await readAll();

    const started = performance.now();
    const migration = startCommand('placement-manage', ['--config-file', configFile, 'online-data-migrations'], folder);
    let migrating = true;
    let written = 0;
    // The writes are on rows of all ages: old rows that the migration has or has not reached yet, and new rows.
    const write = async (index: number): Promise<void> => {
      for (let turn = index; migrating; turn += 4) {
        const provider = sample.providers[50 + (turn % 350)] ?? '';
        const consumer = sample.consumers[50 + (turn % 350)] ?? '';
        const claim = {
          allocations: { [provider]: { resources: { VCPU: 1 + (turn % 7) } } },
          project_id: 'p',
          user_id: 'u',
          consumer_type: 'INSTANCE',
        };
        if (turn % 4 === 0)
          await request('PUT', `/allocations/${randomUUID()}`, { ...claim, consumer_generation: null });
        else if (turn % 4 === 1) await request('PUT', `/allocations/${consumer}`, { ...claim, consumer_generation: 1 });
        else if (turn % 4 === 2) {
          await request('PUT', `/resource_providers/${provider}`, { name: `renamed ${turn}` });
        } else {
          const total = { total: 100_000 + turn };
          await request('PUT', `/resource_providers/${provider}/inventories`, {
            resource_provider_generation: 1,
            inventories: { VCPU: total, MEMORY_MB: total },
          });
        }
        written += 1;
        await sleep(2);
      }
    };
    const writing = [0, 1, 2, 3].map(write);
    const ended = await migration.ended;
    const seconds = (performance.now() - started) / 1000;
    migrating = false;
    await Promise.all(writing);
    t.diagnostic(`${count} rows: ${seconds.toFixed(1)} s, beside ${written} writes`);

    assert.equal(ended.code, 0, ended.stdout.slice(-2000) + ended.stderr);
    assert.ok(written > 50, `only ${written} writes`);
    assert.deepEqual(await readAll(), before);
    await withDatabase(async (database) => assert.equal(await countLacking(database), 0));
    await assertStored(service, 'in the end', false);
    assert.equal((await run('placement-manage', 'online-data-migrations', '--max-count', '1')).code, 0, 'all is done');
    await service.close();
  });
});

for (const engine of engines) {
  test(`a batch takes as many rows as it may on ${engine}`, async () => {
    await withFreshDatabase(engine, async (fresh) => {
      // The embedded database is in memory and has a single connection.
      const service = await openServiceOn(fresh);
      const database = 'connection' in fresh.settings ? await openDatabase(fresh.settings) : service.database;
      await insertOldRows(database, { providers: 10, consumers: 25 });
      const migration = backfillEtags(database);
      const batches: number[] = [];
      for (let done = 1; done > 0; batches.push(done)) ({ done } = await migration.runBatch(20));
      assert.deepEqual(batches, [20, 20, 15, 0]);
      await assertStored(service, 'in the end', false);
      if (database !== service.database) await database.close();
      await service.close();
    });
  });
}

test('rows that are inserted without a tag into a table that was passed already get a tag in the same run', async () => {
  await withFreshDatabase(anyEngine, async (fresh) => {
    const service = await openServiceOn(fresh);
    const database = 'connection' in fresh.settings ? await openDatabase(fresh.settings) : service.database;
    await insertOldRows(database, { providers: 10, consumers: 25 });
    const migration = backfillEtags(database);
    const first = await migration.runBatch(35);
    assert.equal(first.done, 35, 'inventories and some consumers');
    // As a program of a release before entity tags would write them.
    await database.transaction([
      sql`select set_config('placement.etags', 'only', true)`,
      sql`update inventories set etag = null where resource_provider_id = 1001`,
    ]);
    let done: number;
    do ({ done } = await migration.runBatch(20));
    while (done > 0);
    assert.equal(await countLacking(database), 0);
    if (database !== service.database) await database.close();
    await service.close();
  });
});
