import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { runFile, runFolder } from './folder.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'gabbits-'));
  const write = (name: string, fixture: string) =>
    writeFile(
      path.join(folder, name),
      `fixtures: [${fixture}]\ntests: [{ name: a, GET: / }, { name: b, GET: "/$ENVIRON['RP_UUID']", status: 404 }]`,
    );
  await write('first.yaml', 'APIFixture');
  await write('second.yaml', 'APIFixture');
  await write('unknown.yaml', 'NoFixture');
  await write('refused.yaml', 'AllocationFixture');
  await writeFile(path.join(folder, 'ill.yaml'), 'tests: [{ name: a }]');
});
after(() => rm(folder, { recursive: true }));

/** A server that has only the path `/`, one for each file. */
let opened = 0;
let open = 0;
const openServer = async () => {
  const server = http.createServer((request, response) => response.writeHead(request.url === '/' ? 200 : 404).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  opened += 1;
  open += 1;
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    close: async () => {
      open -= 1;
      server.closeAllConnections();
      server.close();
    },
  };
};
const outcomes = async (file: string) =>
  (await runFile(path.join(folder, file), { open: openServer })).map(({ outcome }) => outcome);

test('each file of a folder gets a different server', async () => {
  const before = opened;
  const reported: string[] = [];
  const results = await runFolder({
    folder,
    only: ['first', 'sec*', 'unknown'],
    exclude: ['unknown.yaml'],
    jobs: 2,
    open: openServer,
    report: ({ file }) => reported.push(file),
  });
  assert.deepEqual(reported.toSorted(), ['first.yaml', 'second.yaml']);
  assert.deepEqual(
    results.flatMap(({ tests }) => tests.map(({ outcome }) => outcome)),
    Array(4).fill('passed'),
  );
  assert.equal(opened, before + 2);
  assert.equal(open, 0);
});

test('if a fixture is refused, every test fails and the server is closed', async () => {
  assert.deepEqual(await outcomes('refused.yaml'), ['failed', 'failed']);
  assert.equal(open, 0);
});

test('if a fixture does not exist, every test fails', async () => {
  assert.deepEqual(await outcomes('unknown.yaml'), ['failed', 'failed']);
});

test('a file that cannot be parsed fails', async () => {
  assert.deepEqual(await outcomes('ill.yaml'), ['failed']);
});

test('if the server does not start, every test fails', async () => {
  const open = () => Promise.reject(new Error('no server today'));
  const results = await runFile(path.join(folder, 'first.yaml'), { open });
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['failed', 'failed'],
  );
  assert.match(results[0]?.message ?? '', /no server today/);
});
