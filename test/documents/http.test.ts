/** The blocks of the documents for people with curl and Python do what the documents say. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
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

for (const document of ['README.md', 'docs/http.md', 'docs/recipes.md', 'docs/limits.md', 'docs/lost_updates.md']) {
  test(`the blocks of ${document} print what it says`, { skip }, () =>
    onService(async ({ url }) => {
      assert.ok((await runBlocks(document, url)) >= 2);
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
