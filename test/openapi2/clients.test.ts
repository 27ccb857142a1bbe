/**
 * The descriptions pass redocly and spectral without an error, and clients that are made of openapi-2.yaml place, read and release against a
 * service. The programs for it are installed by the lock file of `generators/`, the first time from the registry of npm packages.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { connect } from '../../src/client/index.ts';
import { versionText } from '../../src/placement/versions.ts';
import { startServer } from '../client/servers.ts';
import { hasPrograms } from '../support/debian_packages.ts';
import { inFolder } from '../support/in_folder.ts';
import { version } from './version_2.ts';

const project = path.join(import.meta.dirname, '..', '..');
/** Not below test/, where the packages' own tests would be found. */
const generators = path.join(project, '.cache', 'generators');
const descriptions = ['openapi.yaml', 'openapi-2.yaml', 'openapi-compute.yaml'].map((file) => path.join(project, file));

async function run(program: string, args: readonly string[], cwd = generators): Promise<string> {
  const failed = (error: { readonly stdout?: string; readonly stderr?: string }) =>
    assert.fail(`${program}: ${error.stdout}${error.stderr}`);
  const { stdout } = await promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 }).catch(failed);
  return stdout;
}

/** A program of the packages of `generators/`, by the Node.js that runs this test. */
const runPackage = (file: string, args: readonly string[], cwd?: string): Promise<string> =>
  run(process.execPath, [path.join(generators, 'node_modules', file), ...args], cwd);

before(async () => {
  await mkdir(generators, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) {
    await copyFile(path.join(import.meta.dirname, 'generators', file), path.join(generators, file));
  }
  await run('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
});

test('redocly finds no error in the descriptions', async () => {
  await runPackage('@redocly/cli/bin/cli.js', ['lint', '--extends=spec', ...descriptions]);
});

test('spectral finds no error in them', async () => {
  await inFolder(async (folder) => {
    const rules = path.join(folder, 'rules.yaml');
    await writeFile(rules, 'extends: ["spectral:oas"]\n');
    const args = ['lint', '--ruleset', rules, '--fail-severity=error', '--display-only-failures', ...descriptions];
    await runPackage('@stoplight/spectral-cli/dist/index.js', args);
  });
});

const program = `
import createClient from 'openapi-fetch';
import type { paths } from './api.ts';

const [, , baseUrl = ''] = process.argv;
const version = { 'OpenStack-API-Version': 'placement ${versionText(version)}' } as const;
const querySerializer = { object: { style: 'form', explode: true } } as const;
const client = createClient<paths>({ baseUrl, querySerializer, headers: { 'X-Auth-Token': 'admin', ...version } });
const consumer_uuid = crypto.randomUUID();
const header = version;

const placed = await client.PUT('/allocations/{consumer_uuid}', {
  params: { path: { consumer_uuid }, header },
  body: {
    candidates: ['resources=PGPU:2'],
    project_id: 'ci',
    user_id: 'ci',
    consumer_generation: null,
    consumer_type: 'JOB',
  },
});
if (placed.data === undefined) throw new Error(JSON.stringify(placed.error));
for (const [uuid, { resources }] of Object.entries(placed.data.allocations)) {
  console.log(placed.data.resource_providers[uuid]?.name, resources.PGPU);
}
const query = { resources: 'PGPU:1', groups: { resources1: 'PGPU:1' }, group_policy: 'isolate' } as const;
const candidates = await client.GET('/allocation_candidates', { params: { header, query } });
console.log(candidates.data?.allocation_requests.length);
const read = await client.GET('/allocations/{consumer_uuid}', { params: { path: { consumer_uuid }, header } });
console.log(read.data?.consumer_generation);
const released = await client.DELETE('/allocations/{consumer_uuid}', { params: { path: { consumer_uuid }, header } });
console.log(released.response.status);
`;

test('a client for TypeScript that is made of openapi-2.yaml compiles, places, reads and releases', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-generated-'));
  const server = await startServer();
  try {
    await makeHost(server.url);
    await symlink(path.join(generators, 'node_modules'), path.join(folder, 'node_modules'));
    await writeFile(path.join(folder, 'package.json'), '{"type": "module"}');
    await writeFile(path.join(folder, 'program.ts'), program);
    await runPackage('openapi-typescript/bin/cli.js', [
      path.join(project, 'openapi-2.yaml'),
      '-o',
      path.join(folder, 'api.ts'),
    ]);
    const options = [
      '--noEmit',
      '--strict',
      '--target',
      'esnext',
      '--module',
      'nodenext',
      '--allowImportingTsExtensions',
    ];
    const types = ['--types', 'node', '--typeRoots', path.join(project, 'node_modules', '@types'), '--skipLibCheck'];
    await runPackage('typescript/bin/tsc', [...options, ...types, 'program.ts'], folder);
    assert.equal(await run(process.execPath, ['program.ts', server.url], folder), 'gpu-1 2\n1\n1\n204\n');
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});

const hasPython = hasPrograms(
  () => spawnSync('python3', ['-c', 'import jsonschema']).status === 0,
  ['python3', 'python3-jsonschema'],
);

test('Python compiles all patterns, finds all examples valid, and places, reads and releases by the schemas', {
  skip: hasPython ? false : 'Python, or its package jsonschema, is missing, and cannot be installed here',
}, async () => {
  const server = await startServer();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-python-'));
  try {
    await makeHost(server.url);
    const file = path.join(folder, 'openapi-2.json');
    await writeFile(file, JSON.stringify(parse(await readFile(path.join(project, 'openapi-2.yaml'), 'utf8'))));
    const printed = await run('python3', [path.join(import.meta.dirname, 'by_schema.py'), file, server.url]);
    const [patterns, examples, ...story] = printed.trim().split('\n');
    assert.ok(Number(patterns) > 50, patterns);
    assert.ok(Number(examples) > 40, examples);
    assert.deepEqual(story, ["{'PGPU': 2}", '1', '204']);
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});

async function makeHost(url: string): Promise<void> {
  const placement = connect({ endpoint: url, auth: 'admin' });
  const { uuid, generation } = await placement.providers.create({ name: 'gpu-1' });
  await placement.inventories.set(uuid, {
    inventories: { PGPU: { total: 4 } },
    resource_provider_generation: generation,
  });
}
