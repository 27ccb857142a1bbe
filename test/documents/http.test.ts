/** The blocks of the documents for people with curl and Python do what the documents say; so does the scheduler of examples/. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect } from '../../src/client/index.ts';
import { project } from '../client/documentation.ts';
import { startServer, type TestServer } from '../client/servers.ts';
import { hasPython, runBlocks } from './blocks.ts';

const skip = hasPython() ? false : 'Python, or its package requests, is missing, and cannot be installed here';

async function onService(use: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startServer();
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

for (const document of ['docs/http.md', 'docs/recipes.md', 'docs/limits.md']) {
  test(`the blocks of ${document} print what it says`, { skip }, () =>
    onService(async ({ url }) => {
      assert.ok((await runBlocks(document, url)) > 2);
    }),
  );
}

test('the blocks of docs/fleet_files.md print what it says, in a folder where they write their file', { skip }, () =>
  onService(async ({ url }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-fleet-file-'));
    try {
      assert.ok((await runBlocks('docs/fleet_files.md', url, folder)) >= 6);
    } finally {
      await rm(folder, { recursive: true });
    }
  }),
);

test('the scheduler runs each job on a host with free processors, and gives all of them back', { skip }, () =>
  onService(async ({ url }) => {
    const placement = connect({ endpoint: url, auth: 'admin' });
    for (const name of ['gpu-1', 'gpu-2']) {
      const { uuid, generation } = await placement.providers.create({ name });
      const inventories = { PGPU: { total: 2 } };
      await placement.inventories.set(uuid, { inventories, resource_provider_generation: generation });
    }
    const child = spawn('python3', [path.join(project, 'examples', 'scheduler.py')], {
      env: { ...process.env, PLACEMENT_URL: url },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    // More than fit at once, so that some must wait for others.
    const jobs = [2, 1, 2, 1, 1, 2, 1, 1].map(
      (processors, job) => `${processors} echo job ${job} on $HOST; sleep 0.2\n`,
    );
    child.stdin.end(jobs.join(''));
    const lines = (await text(child.stdout)).trim().split('\n').toSorted();
    assert.equal(lines.length, jobs.length);
    for (const [job, line] of lines.entries()) assert.match(line, new RegExp(`^job ${job} on gpu-[12]$`));
    const left = await placement.consumers.page({ limit: 10 });
    assert.deepEqual(left, []);
  }),
);
