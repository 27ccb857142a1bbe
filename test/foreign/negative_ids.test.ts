/** Old rows with ids below zero, from a sequence that was continued there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onlineMigrations, runBatch } from '../../db/online/run.ts';
import { countLacking } from '../etags/old_rows.ts';
import { withDeployment } from './deployment.ts';

const lowest = -2_147_483_648;

test('the online data migrations complete all old rows, also those with ids below zero', async () => {
  await withDeployment(async ({ service: { database }, send, execute }) => {
    await execute(
      `insert into resource_providers (id, uuid, name, generation)
        select ${lowest} + n, gen_random_uuid(), 'below ' || n, 1 from generate_series(0, 20) as n`,
      `insert into traits (id, name) select ${lowest} + n, 'CUSTOM_BELOW_' || n from generate_series(0, 20) as n`,
      `insert into inventories (id, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
        select id, id, 0, 9, 0, 1, 9, 1, 1 from resource_providers where id < 0`,
      `insert into consumers (id, uuid, project_id, user_id, generation)
        select p.id, p.uuid, (select min(id) from projects), (select min(id) from users), 1 from resource_providers p where p.id < 0`,
      `insert into allocations (id, resource_provider_id, resource_class_id, consumer_id, used)
        select id, id, 0, uuid, 1 from resource_providers where id < 0`,
      // From before consumers had records.
      `insert into allocations (id, resource_provider_id, resource_class_id, consumer_id, used)
        select id + 100, id, 0, 'old ' || id, 1 from resource_providers where id < 0`,
      'delete from resource_provider_etags',
      "select set_config('placement.etags', 'only', false)",
      'update inventories set etag = null',
      'update consumers set etag = null',
      "update traits set etag = null where name like 'CUSTOM%'",
    );
    const migrations = onlineMigrations(database, { projectId: 'some project', userId: 'some user' });
    let done = 0;
    do {
      const parts = await runBatch(migrations, 4);
      assert.ok(parts.every(({ error }) => error === undefined));
      done = parts.reduce((sum, part) => sum + part.done, 0);
    } while (done > 0);
    assert.equal(await countLacking(database), 0);
    const { rootless } = await database.kysely
      .selectFrom('resource_providers')
      .select(({ fn }) => fn.countAll<string>().as('rootless'))
      .where('root_provider_id', 'is', null)
      .executeTakeFirstOrThrow();
    assert.equal(Number(rootless), 0);
    const consumers = await send('GET', '/consumers?project_id=some%20project&limit=1000', undefined, 'placement 2.2');
    assert.equal((consumers.json as { readonly consumers: readonly unknown[] }).consumers.length, 21); // the form of this answer
  }, 'postgresql');
});
