import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { engines } from '../engines.ts';
import { withCommands } from './commands.ts';
import { insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';

/* The boxes are those of upstream's command, to the character. */

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
| Check: Policy File JSON to YAML Migration                            |
| Result: Failure                                                      |
| Details: Your policy file is JSON-formatted which is deprecated. You |
|   need to switch to YAML-formatted file. Use the                     |
|   \`\`oslopolicy-convert-json-to-yaml\`\` tool to convert the            |
|   existing JSON-formatted files to YAML in a backwards-              |
|   compatible manner: https://docs.openstack.org/oslo.policy/         |
|   latest/cli/oslopolicy-convert-json-to-yaml.html.                   |
+----------------------------------------------------------------------+
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
      assert.equal((await check()).code, 1, 'YAML is no failure');
      await writeFile(path.join(folder, 'policy.yaml'), '{"admin_api": "role:admin"}\n');
      const outdated = await check();
      assert.equal(outdated.code, 2);
      assert.ok(outdated.stdout.includes(jsonPolicy), outdated.stdout);
    });
  });
}

test('placement-status upgrade check without a schema is unexpected', async () => {
  await withCommands('postgresql', 'empty', async ({ run }) => {
    const ended = await run('placement-status', 'upgrade', 'check');
    assert.equal(ended.code, 255);
    assert.match(ended.stderr, /^placement-status: .*"placement-manage db sync".*\n$/);
  });
});
