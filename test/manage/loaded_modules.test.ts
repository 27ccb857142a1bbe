import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type CommandWorld, runToEnd, startCommand, withCommands } from './commands.ts';

const recorder = pathToFileURL(path.join(import.meta.dirname, 'record_modules.ts')).href;

/**
 * The modules that belong to a part of the service. A start loads them only where its configuration wants the part: each costs time and
 * memory of every process.
 */
const partOf: Readonly<Record<string, RegExp>> = {
  'the console': /\/src\/(console\/|http\/console\.ts)/,
  'the embedded database': /\/node_modules\/@electric-sql\/|\/db\/engine\/embedded/,
  'the Compute API': /\/src\/compute\//,
  Keystone: /\/src\/access\/keystone\/(?!settings\.ts)/,
  'policy files': /\/node_modules\/yaml\//,
  'the text of migrations': /\/db\/schema\/migrations\//,
  workers: /\/src\/workers\/(supervisor|hand_over)\.ts/,
  'the printed configuration': /\/src\/config\/show\.ts/,
  'why nothing fits': /\/src\/search\/explanation\//,
  'the import': /\/src\/manage\/|\/node_modules\/mysql2\//,
};

/** Starts the service, calls back with its address, and returns the parts of which modules were loaded until then. */
async function partsLoaded(
  { folder, configFile }: CommandWorld,
  environment: Readonly<Record<string, string>> = {},
  use: (url: string) => Promise<void> = async () => {},
): Promise<readonly string[]> {
  const file = path.join(folder, 'modules');
  await writeFile(file, '');
  const env = {
    NODE_OPTIONS: `--import=${recorder}`,
    RECORDED_MODULES: file,
    // By default also /etc/placement/policy.d, which a package of OpenStack Placement contains.
    OS_OSLO_POLICY__POLICY_DIRS: path.join(folder, 'no-policy.d'),
    ...environment,
  };
  const server = startCommand('placement-api', ['--config-file', configFile], folder, env);
  const [, url = ''] = await server.said(/^placement-api \d\S* listens on (http:\/\/\S+)\n/m);
  await use(url);
  const modules = (await readFile(file, 'utf8')).split('\n');
  server.child.kill();
  await server.ended;
  assert.ok(
    modules.some((url) => url.endsWith('/src/start/service.ts')),
    'modules of the service are recorded',
  );
  return Object.keys(partOf).filter((part) => modules.some((url) => partOf[part]?.test(url)));
}

const off = { OS_CONSOLE__ENABLED: 'false' };

test('a start on PostgreSQL loads no part of the service that its configuration does not want', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    assert.deepEqual(await partsLoaded(world, off), []);
    assert.deepEqual(await partsLoaded(world, { ...off, OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true' }), []);
  });
});

test('a part that the configuration wants is loaded by the start', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    assert.deepEqual(await partsLoaded(world, { ...off, OS_COMPUTE__ENABLED: 'true' }), ['the Compute API']);
    const policies = path.join(world.folder, 'policies');
    await mkdir(policies);
    await writeFile(path.join(policies, 'rules.yaml'), '"placement:usages": "role:admin"\n');
    assert.deepEqual(await partsLoaded(world, { ...off, OS_OSLO_POLICY__POLICY_DIRS: policies }), ['policy files']);
    assert.deepEqual(await partsLoaded(world, { OS_CONSOLE__ENABLED: 'true' }), ['the console']);
    const keystone = {
      OS_API__AUTH_STRATEGY: 'keystone',
      OS_KEYSTONE_AUTHTOKEN__AUTH_URL: 'http://127.0.0.1:1/v3',
      OS_KEYSTONE_AUTHTOKEN__USERNAME: 'placement',
      OS_KEYSTONE_AUTHTOKEN__PASSWORD: 'secret',
      OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME: 'service',
      OS_KEYSTONE_AUTHTOKEN__USER_DOMAIN_NAME: 'Default',
      OS_KEYSTONE_AUTHTOKEN__PROJECT_DOMAIN_NAME: 'Default',
    };
    assert.deepEqual(await partsLoaded(world, keystone), ['Keystone']);
  });
});

test('a start on an empty PostgreSQL database, or on the embedded one, loads the migrations that it runs', async () => {
  await withCommands('postgresql', 'empty', async (world) => {
    const syncing = { ...off, OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true' };
    assert.deepEqual(await partsLoaded(world, syncing), ['the text of migrations']);
  });
  await withCommands('embedded', 'empty', async (world) => {
    assert.deepEqual(await partsLoaded(world, off), ['the embedded database', 'the text of migrations']);
  });
});

test('a health check loads the configuration, and nothing that serves', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const file = path.join(folder, 'modules');
    await writeFile(file, '');
    const env = { NODE_OPTIONS: `--import=${recorder}`, RECORDED_MODULES: file };
    const args = ['--config-file', configFile, '--port', '1', '--check'];
    const { code, stderr } = await runToEnd('placement-api', args, folder, env);
    assert.equal(code, 1);
    assert.match(stderr, /^placement-api: The service does not answer at http:\/\/127\.0\.0\.1:1: /);
    const modules = (await readFile(file, 'utf8')).trim().split('\n');
    assert.ok(
      modules.some((url) => url.endsWith('/src/start/check.ts')),
      'modules are recorded',
    );
    const packages = modules.filter((url) => /\/node_modules\/(?!commander\/)/.test(url));
    const parts = modules.filter((url) =>
      /\/src\/(api|access|claims|client|compute|console|fleet|log|manage|metrics|queue|rest|search|workers)\//.test(
        url,
      ),
    );
    assert.deepEqual({ packages, parts }, { packages: [], parts: [] });
    assert.ok(modules.length < 80, `${modules.length} modules`);
  });
});

test('the first question that needs an explanation loads the code that makes it', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    const parts = await partsLoaded(world, off, async (url) => {
      const answer = await fetch(`${url}/allocation_candidates/explanation?resources=VCPU:1`, {
        headers: { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.3' },
      });
      assert.equal(answer.status, 200, await answer.text());
    });
    assert.deepEqual(parts, ['why nothing fits']);
  });
});
