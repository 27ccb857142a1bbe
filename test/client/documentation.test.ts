import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { compileExamples, readExamples, runExample, writeExamples } from './documentation.ts';
import { startKeystone } from './keystone_server.ts';
import { startServer, type TestServer } from './servers.ts';

const examples = await readExamples();

let folder: string;
let server: TestServer;
let keystone: TestServer;

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-documentation-'));
  server = await startServer();
  keystone = await startKeystone({ placementUrl: server.url });
  await writeExamples(folder, examples);
});

after(async () => {
  await keystone.close();
  await server.close();
  await rm(folder, { recursive: true });
});

test('docs/client.md has an example for each common task', () => {
  assert.deepEqual(
    examples.map(({ name }) => name),
    [
      'connect',
      'keystone',
      'tree',
      'schedule',
      'older',
      'waiting',
      'move',
      'tags',
      'consumers',
      'why',
      'names',
      'errors',
      'signal',
    ],
  );
});

test('the examples of docs/client.md compile', () => compileExamples(folder));

for (const { name, output } of examples) {
  test(`the example "${name}" of docs/client.md prints the documented output`, async () => {
    const env = { OS_ENDPOINT: server.url, OS_AUTH_URL: keystone.url };
    assert.equal(await runExample(folder, name, env), output);
  });
}
