/** The blocks of docs/history.md do what it says, on a service that keeps a history. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../src/client/index.ts';
import { startServer } from '../client/servers.ts';
import { runBlocks, withoutPython } from './blocks.ts';

test('docs/history.md prints what it says', { skip: withoutPython }, async () => {
  const server = await startServer({}, { history: { enabled: true } });
  try {
    await connect({ endpoint: server.url, auth: 'admin' }).serverVersion();
    assert.ok((await runBlocks('docs/history.md', server.url)) >= 5);
  } finally {
    await server.close();
  }
});
