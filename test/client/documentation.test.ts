import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { project, readExamples } from './documentation.ts';
import { startKeystone } from './keystone_server.ts';
import { startServer, type TestServer } from './servers.ts';

const run = promisify(execFile);
const examples = await readExamples();

let folder: string;
let server: TestServer;
let keystone: TestServer;

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-documentation-'));
  server = await startServer();
  keystone = await startKeystone({ placementUrl: server.url });
  // The examples import the published package. Here they import its source.
  const source = path.join(project, 'src', 'client', 'index.ts');
  for (const { name, code } of examples) {
    await writeFile(path.join(folder, `${name}.ts`), code.replace("'placement/client'", `'${source}'`));
  }
  const typeRoots = [path.join(project, 'node_modules', '@types')];
  const compilerOptions = { typeRoots, rewriteRelativeImportExtensions: false };
  const settings = { extends: path.join(project, 'tsconfig.json'), compilerOptions, include: ['*.ts'] };
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(settings));
  await writeFile(path.join(folder, 'package.json'), '{"type": "module"}');
});

after(async () => {
  await keystone.close();
  await server.close();
  await rm(folder, { recursive: true });
});

test('docs/client.md has an example for each common task', () => {
  assert.deepEqual(
    examples.map(({ name }) => name),
    ['connect', 'keystone', 'tree', 'schedule', 'move', 'tags', 'consumers', 'errors', 'signal'],
  );
});

test('the examples of docs/client.md compile', async () => {
  const compiler = path.join(project, 'node_modules', '.bin', 'tsc');
  await run(compiler, ['--noEmit', '-p', folder]).catch(({ stdout }) => assert.fail(stdout));
});

for (const { name, output } of examples) {
  test(`the example "${name}" of docs/client.md prints the documented output`, async () => {
    const env = { PATH: process.env.PATH, OS_ENDPOINT: server.url, OS_AUTH_URL: keystone.url };
    const { stdout } = await run(process.execPath, [path.join(folder, `${name}.ts`)], { env, timeout: 60_000 });
    assert.equal(stdout, output);
  });
}
