/**
 * Services from before services had UUIDs: the online data migration and readers may both give them one, at the same
 * time.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { onlineMigrations } from '../../db/online/run.ts';
import { readServices } from '../../db/statements/services/service_row.ts';
import { runOnlineDataMigrations } from '../../src/manage/online_data_migrations.ts';
import { untilWaiting, withTwoConnections } from '../races/two_connections.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { asNova, services, withRegistry } from './nova.ts';

const nobody = { projectId: 'nobody', userId: 'nobody' };

for (const engine of engines) {
  test(`old services get a UUID by the migration, in batches, on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { database } = service;
      await insertOldServices(database, 120);
      const lines: string[] = [];
      const code = await runOnlineDataMigrations(onlineMigrations(database, nobody), 30, (line) => lines.push(line));
      assert.equal(code, 1);
      assert.match(lines.join('\n'), /30 rows matched query backfill_service_uuids, 30 migrated/);
      assert.equal(await countWithout(database), 90);
      await runOnlineDataMigrations(onlineMigrations(database, nobody), undefined, (line) => lines.push(line));
      assert.equal(await countWithout(database), 0);
      assert.match(lines.join('\n'), /\| +backfill_service_uuids +\| +90 +\| +90 +\|/);
      const { json } = await asNova(service)('GET', services);
      const ids = (at(json, 'services') as { id: string }[]).map(({ id }) => id);
      assert.equal(new Set(ids).size, 120);
      for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    });
  });

  test(`readers and the migration agree about the UUID of an old service on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { database } = service;
      await insertOldServices(database, 40);
      const read = async () => JSON.stringify(at((await asNova(service)('GET', services)).json, 'services'));
      const views = await Promise.all([
        ...Array.from({ length: 6 }, read),
        runOnlineDataMigrations(onlineMigrations(database, nobody), undefined, () => {}).then(read),
      ]);
      const idsOf = (view: string) => (JSON.parse(view) as { id: string }[]).map(({ id }) => id);
      for (const view of views) assert.deepEqual(idsOf(view), idsOf(views[0] ?? ''));
      assert.equal(new Set(idsOf(views[0] ?? '')).size, 40);
    });
  });
}

test('readers lock old services in one order, so that two of them do not wait for each other in a circle', async () => {
  await withTwoConnections(async ({ database, other }) => {
    // The order of the rows in the table is not that of their keys.
    await other.query(`insert into cells (id, uuid, name) values (1, 'cell', 'cell')`);
    await other.query(`insert into services (cell_id, id, host, "binary")
      select 1, id, 'host' || id, 'nova-compute' from generate_series(9, 1, -1) as id`);
    await other.query('begin');
    await other.query('select from services where id = 1 for update');
    const reading = readServices(database, {}, 60);
    await untilWaiting(other);
    const free = await other.query('select from services for update skip locked');
    assert.equal(free.rowCount, 9, 'it holds no other lock while it waits for the first');
    await other.query('commit');
    assert.equal(await reading, undefined, 'they have a uuid now');
    assert.equal((await readServices(database, {}, 60))?.length, 9);
  });
});

test('services that lose their uuid each time that they get one are a 503', async () => {
  await withTestService(anyEngine, withRegistry, async (service) => {
    const { database } = service;
    await insertOldServices(database, 1);
    await sql`create function lose_uuid() returns trigger language plpgsql as 'begin new.uuid := null; return new; end'`.execute(
      database.kysely,
    );
    await sql`create trigger lose before update on services for each row execute function lose_uuid()`.execute(
      database.kysely,
    );
    const { status, text } = await asNova(service)('GET', services);
    assert.equal(status, 503, text);
  });
});

async function insertOldServices({ kysely }: Database, count: number): Promise<void> {
  const cell = await kysely
    .insertInto('cells')
    .values({ name: 'old', uuid: 'old' })
    .returning('id')
    .executeTakeFirstOrThrow();
  const rows = Array.from({ length: count }, (_, index) => ({
    cell_id: cell.id,
    id: index + 1,
    host: `old-${index}`,
    binary: 'nova-compute',
  }));
  await kysely.insertInto('services').values(rows).execute();
}

async function countWithout({ kysely }: Database): Promise<number> {
  const rows = await kysely.selectFrom('services').select('id').where('uuid', 'is', null).execute();
  return rows.length;
}
