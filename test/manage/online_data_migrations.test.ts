import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { createIncompleteConsumers } from '../../db/online/create_incomplete_consumers.ts';
import { anyEngine, engines, withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { withCommands } from './commands.ts';
import { countStrays, insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';

const moreConfig = `[placement]
incomplete_consumer_project_id = old-project
incomplete_consumer_user_id = old-user
`;

const nothing = '      0      |     0     ';

/** The table in the form of upstream's command. Migrations that upstream does not have come after upstream's. */
const table = (roots: string, consumers: string, ours: string | null = nothing) => `\
+-----------------------------+-------------+-----------+
|          Migration          | Total Found | Completed |
+-----------------------------+-------------+-----------+
|    set_root_provider_ids    |${roots}|
| create_incomplete_consumers |${consumers}|
${ours === null ? '' : `|    backfill_service_uuids   |${ours}|\n|        backfill_etags       |${ours}|\n`}\
+-----------------------------+-------------+-----------+
`;

for (const engine of engines) {
  test(`the online data migrations of old data on ${engine}`, async () => {
    await withCommands(
      engine,
      'migrated',
      async ({ run, withDatabase }) => {
        await withDatabase(async (database) => {
          const { id } = await insertOldProvider(database, 'old');
          await insertOldAllocations(database, id, newUuids(1020));
        });
        const migrate = (...args: readonly string[]) => run('placement-manage', ...args);

        for (const count of ['0', '-1', 'many', '1.5', '']) {
          assert.deepEqual(await migrate('db', 'online_data_migrations', '--max-count', count), {
            code: 127,
            stdout: 'Must supply a positive value for max_count\n',
            stderr: '',
          });
        }
        assert.deepEqual(await migrate('db', 'online_data_migrations', '--max-count', '10'), {
          code: 1,
          stdout:
            '1 rows matched query set_root_provider_ids, 1 migrated\n' +
            '9 rows matched query create_incomplete_consumers, 9 migrated\n' +
            table('      1      |     1     ', '      9      |     9     ', null),
          stderr: '',
        });
        assert.deepEqual(await migrate('online-data-migrations'), {
          code: 0,
          stdout:
            'Running batches of 500 until complete\n' +
            '500 rows matched query create_incomplete_consumers, 500 migrated\n' +
            '500 rows matched query create_incomplete_consumers, 500 migrated\n' +
            '11 rows matched query create_incomplete_consumers, 11 migrated\n' +
            table(nothing, '     1011    |    1011   '),
          stderr: '',
        });
        assert.deepEqual(await migrate('online-data-migrations', '--max-count', '10'), {
          code: 0,
          stdout: table(nothing, nothing),
          stderr: '',
        });
        await withDatabase(async (database) => {
          const consumers = await database.kysely
            .selectFrom('consumers')
            .innerJoin('projects', 'projects.id', 'project_id')
            .innerJoin('users', 'users.id', 'user_id')
            .select(['generation', 'projects.external_id as project', 'users.external_id as user', 'consumer_type_id'])
            .distinct()
            .execute();
          assert.deepEqual(consumers, [
            { generation: 0, project: 'old-project', user: 'old-user', consumer_type_id: null },
          ]);
          assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
        });
      },
      moreConfig,
    );
  });

  test(`a failed migration is reported, with exit code 2 if no other migration did anything, on ${engine}`, async () => {
    await withCommands(engine, 'migrated', async ({ run, withDatabase }) => {
      await withDatabase(async (database) => {
        await insertOldProvider(database, 'old');
        await database.kysely.schema.alterTable('consumers').renameTo('elsewhere').execute();
      });
      const limited = await run('placement-manage', 'db', 'online_data_migrations', '--max-count', '10');
      assert.equal(limited.code, 1, 'because the root was set');
      assert.match(
        limited.stdout,
        /Error attempting to run create_incomplete_consumers: relation "consumers" does not/,
      );
      const unlimited = await run('placement-manage', 'db', 'online_data_migrations');
      assert.equal(unlimited.code, 2);
      assert.match(unlimited.stdout, /Some migrations failed unexpectedly\./);
    });
  });
}

test('an old allocation that sorts before the searched ones gets its consumer in the same run', () =>
  withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const { id } = await insertOldProvider(database, 'old');
      const uuidOf = (first: string) => `${first}0000000-0000-4000-8000-000000000001`;
      await insertOldAllocations(database, id, ['5', '9'].map(uuidOf));
      const migration = createIncompleteConsumers(database, { projectId: 'old-project', userId: 'old-user' });
      assert.deepEqual(await migration.runBatch(1), { found: 1, done: 1 });
      await insertOldAllocations(database, id, [uuidOf('1')]);
      let done = 0;
      for (let last = 1; last > 0; done += last) ({ done: last } = await migration.runBatch(50));
      assert.equal(done, 2);
      assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
    } finally {
      await database.close();
    }
  }));

test('a consumer that another process has migrated meanwhile is not counted, and the rest is migrated', () =>
  withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const { id } = await insertOldProvider(database, 'old');
      await insertOldAllocations(database, id, newUuids(9));
      const [one, other] = [1, 2].map(() =>
        createIncompleteConsumers(database, { projectId: 'old-project', userId: 'old-user' }),
      );
      assert.ok(one !== undefined && other !== undefined);
      assert.deepEqual(await one.runBatch(1), { found: 1, done: 1 }, 'and it has found the other eight');
      assert.deepEqual(await other.runBatch(5), { found: 5, done: 5 });
      assert.deepEqual(await one.runBatch(50), { found: 3, done: 3 });
      assert.deepEqual(await other.runBatch(50), { found: 0, done: 0 });
      assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
    } finally {
      await database.close();
    }
  }));

test('an online data migration of a read-only database says what to do', async () => {
  await withCommands('postgresql', 'migrated', async ({ run, config: { connection = '' } }) => {
    const database = new URL(connection).pathname.slice(1);
    await execute(connection, `alter database ${database} set default_transaction_read_only = on`);
    const { code, stdout } = await run('placement-manage', 'online-data-migrations');
    assert.equal(code, 2);
    assert.match(
      stdout,
      /^Error attempting to run set_root_provider_ids: The database is read-only: .* switch it off\.$/m,
    );
  });
});
