/** What tests with server processes rely on: a process that serves one database after the other serves each as a new process would. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { succeed } from './client.ts';
import { startServer } from './server_process.ts';
import { withSharedDatabase } from './shared_database.ts';

const trait = 'CUSTOM_OF_THE_FIRST';

test('a released process serves the next database, of which it knows nothing, and a killed one serves no more', () =>
  withSharedDatabase('postgresql', async (one) => {
    const first = await startServer(one);
    await succeed(first.client, 'PUT', `/traits/${trait}`, 39);
    await first.release();
    await assert.rejects(fetch(first.url), 'it listens no more');
    await withSharedDatabase('postgresql', async (other) => {
      const second = await startServer(other);
      assert.equal(second.pid, first.pid);
      assert.equal((await second.client.send('GET', `/traits/${trait}`, 39)).status, 404);
      assert.deepEqual(await second.query(`select name from traits where name = '${trait}'`), []);
      await second.kill();
      await second.release();
    });
    const third = await startServer(one);
    try {
      assert.notEqual(third.pid, first.pid);
      assert.equal((await third.client.send('GET', `/traits/${trait}`, 39)).status, 204);
    } finally {
      await third.kill();
    }
  }));
