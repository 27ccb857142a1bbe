import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { beginImport, endImport } from '../../db/schema/unfinished_import.ts';
import { engines } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { withCommands } from './commands.ts';
import { insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';
import { upstreamSchemas } from './upstream_schema.ts';

/* The boxes are equal to those of upstream's command, in every character. */

const allWell = `\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
`;

const incomplete = `\
+---------------------------------------------------------------+
| Upgrade Check Results                                         |
+---------------------------------------------------------------+
| Check: Missing Root Provider IDs                              |
| Result: Success                                               |
| Details: None                                                 |
+---------------------------------------------------------------+
| Check: Incomplete Consumers                                   |
| Result: Warning                                               |
| Details: There are 111 incomplete consumers table records for |
|   existing allocations. Run the "placement-manage db          |
|   online_data_migrations" command.                            |
+---------------------------------------------------------------+
| Check: Policy File JSON to YAML Migration                     |
| Result: Success                                               |
| Details: None                                                 |
+---------------------------------------------------------------+
`;

const rootless = `\
| Check: Missing Root Provider IDs                                    |
| Result: Failure                                                     |
| Details: There is at least one resource provider table record which |
|   misses its root provider id. Run the "placement-manage db         |
|   online_data_migrations" command.                                  |
+---------------------------------------------------------------------+
`;

const jsonPolicy = `\
| Check: Policy File JSON to YAML Migration                          |
| Result: Failure                                                    |
| Details: The policy file is JSON, which is deprecated. "placement- |
|   manage policy list --changed" prints its rules as YAML:          |
|   write them to a new file, and let that replace this one as       |
|   policy.yaml, or as what [oslo_policy] policy_file names.         |
+--------------------------------------------------------------------+
`;

for (const engine of engines) {
  test(`placement-status upgrade check on ${engine}`, async () => {
    await withCommands(engine, 'migrated', async ({ folder, run, withDatabase }) => {
      const check = (...args: readonly string[]) => run('placement-status', 'upgrade', 'check', ...args);
      assert.deepEqual(await check(), { code: 0, stdout: allWell, stderr: '' });

      const id = await withDatabase(async (database) => {
        const provider = await insertOldProvider(database, 'old');
        await insertOldAllocations(database, provider.id, newUuids(111));
        return provider.id;
      });
      const failed = await check();
      assert.equal(failed.code, 2);
      assert.ok(failed.stdout.includes(rootless), failed.stdout);
      const json = await check('--json');
      assert.equal(json.code, 2);
      const { name, checks } = JSON.parse(json.stdout);
      assert.equal(name, 'Upgrade Check Results');
      assert.deepEqual(
        checks.map((each: { readonly check: string; readonly result: number }) => [each.check, each.result]),
        [
          ['Missing Root Provider IDs', 2],
          ['Incomplete Consumers', 1],
          ['Policy File JSON to YAML Migration', 0],
        ],
      );
      assert.match(checks[1].details, /^There are 111 incomplete consumers table records/);

      await withDatabase(({ kysely }) =>
        kysely.updateTable('resource_providers').set({ root_provider_id: id }).where('id', '=', id).execute(),
      );
      assert.deepEqual(await check(), { code: 1, stdout: incomplete, stderr: '' });

      await writeFile(path.join(folder, 'policy.yaml'), 'admin_api: role:admin\n');
      assert.equal((await check()).code, 1, 'a policy file in YAML is no failure');
      await writeFile(path.join(folder, 'policy.yaml'), '{"admin_api": "role:admin"}\n');
      const outdated = await check();
      assert.equal(outdated.code, 2);
      assert.ok(outdated.stdout.includes(jsonPolicy), outdated.stdout);
    });
  });
}

const laterMigration = "insert into kysely_migration values ('999_future', '2030-01-01')";
const schemas: Readonly<Record<string, readonly [change: string, says: RegExp]>> = {
  'lacks a migration': [
    "delete from kysely_migration where name like '004%'",
    /^The database lacks the migrations 004_entity_tags\. Run "placement-manage db sync"/,
  ],
  'has a migration of a newer release': [
    laterMigration,
    /^The database is of a newer release .* 999_future\. Use that/,
  ],
};

for (const [what, [change, says]] of Object.entries(schemas)) {
  test(`placement-status upgrade check fails if the schema ${what}`, async () => {
    await withCommands('postgresql', 'migrated', async ({ run, config }) => {
      await execute(config.connection ?? '', change);
      const { code, stdout } = await run('placement-status', 'upgrade', 'check', '--json');
      assert.equal(code, 2);
      const { check, result, details } = JSON.parse(stdout).checks.at(-1);
      assert.deepEqual([check, result], ['Schema Migrations', 2]);
      assert.match(details, says);
      assert.match(
        (await run('placement-status', 'upgrade', 'check')).stdout,
        /Check: Schema Migrations .*\n.*Failure/,
      );
    });
  });
}

test('while an import is unfinished the upgrade check fails, and no command changes the data', async () => {
  await withCommands('embedded', 'migrated', async ({ run, folder, withDatabase }) => {
    const check = (...args: readonly string[]) => run('placement-status', 'upgrade', 'check', ...args);
    await withDatabase((database) => beginImport(database, 'mysql://db.example.com:3306/placement'));
    const { code, stdout } = await check('--json');
    assert.equal(code, 2);
    assert.deepEqual(JSON.parse(stdout).checks.at(-1), {
      check: 'Unfinished Import',
      result: 2,
      details:
        'The database holds an unfinished import. Run the same "placement-manage import" again: it continues where it stopped.',
    });
    const says =
      'placement-manage: The database holds an unfinished import. Run the same "placement-manage import" again: ' +
      'it continues where it stopped.\n';
    const file = path.join(folder, 'providers.jsonl');
    await writeFile(file, '');
    const token = ['token', 'create', '--project', 'p', '--user', 'u', '--role', 'member'];
    for (const [args, code] of [
      [['online-data-migrations'], 2],
      [['db', 'online_data_migrations'], 2],
      [['load', file], 1],
      [token, 1],
    ] as const) {
      assert.deepEqual(await run('placement-manage', ...args), { code, stdout: '', stderr: says });
    }
    await withDatabase(endImport);
    assert.deepEqual(await check(), { code: 0, stdout: allWell, stderr: '' });
  });
});

test('online-data-migrations before db sync says what is missing, with the exit code of a failure', async () => {
  await withCommands('postgresql', 'empty', async ({ run, config }) => {
    const url = config.connection ?? '';
    const migrate = () => run('placement-manage', 'online-data-migrations', '--max-count', '5');
    const none = 'placement-manage: The database has no tables yet. Run "placement-manage db sync".\n';
    assert.deepEqual(await migrate(), { code: 2, stdout: '', stderr: none });
    await execute(url, upstreamSchemas.a082b8bb98d0 ?? '');
    const unmigrated = await migrate();
    assert.deepEqual([unmigrated.code, unmigrated.stdout], [2, '']);
    assert.match(unmigrated.stderr, /^placement-manage: The database lacks the migrations 001_placement_schema, .*\n$/);
    await run('placement-manage', 'db', 'sync');
    await execute(url, laterMigration);
    assert.equal((await migrate()).code, 0, 'the schema of a newer release only adds to this one');
  });
});

test('placement-status upgrade check without a schema ends with the code of an unexpected error', async () => {
  await withCommands('postgresql', 'empty', async ({ run }) => {
    const ended = await run('placement-status', 'upgrade', 'check');
    assert.equal(ended.code, 255);
    assert.match(ended.stderr, /^placement-status: .*"placement-manage db sync".*\n$/);
  });
});
