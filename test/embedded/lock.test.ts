/** One process at a time uses the folder of an embedded database, however many start at once, and also after a kill -9. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { fillEmbedded } from '../support/templates.ts';

async function inFolder(use: (data: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-lock-'));
  try {
    await use(path.join(folder, 'data'));
  } finally {
    for (const child of running) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

const running = new Set<ChildProcess>();

/** A process that locks the folder on request. */
async function starter(data: string) {
  const child = fork(path.join(import.meta.dirname, 'lock_folder.ts'), [data]);
  running.add(child);
  const ended = once(child, 'exit').then(() => running.delete(child));
  await once(child, 'message');
  return {
    /** @returns 'locked', or the error */
    lock: async (): Promise<string> => {
      const answer = once(child, 'message');
      child.send('lock');
      return String((await answer)[0]);
    },
    unlock: async (): Promise<void> => {
      child.send('unlock');
      await ended;
    },
    kill: async (): Promise<void> => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const inUse = (data: string): string =>
  `Error: The embedded database in ${data} is in use by another process. Stop that process, or set [placement_database] ` +
  'embedded_path to another folder, or connection to a PostgreSQL server for several processes.';

test('of many processes that start at once one gets the folder, also after a kill -9 of the process before', async () => {
  await inFolder(async (data) => {
    let holder = await starter(data);
    assert.equal(await holder.lock(), 'locked');
    for (let round = 0; round < 3; round += 1) {
      const starters = await Promise.all(Array.from({ length: 12 }, () => starter(data)));
      await holder.kill();
      const answers = await Promise.all(starters.map(({ lock }) => lock()));
      assert.deepEqual(answers.toSorted(), [...Array<string>(11).fill(inUse(data)), 'locked']);
      const next = starters[answers.indexOf('locked')];
      assert.ok(next);
      holder = next;
    }
    await holder.unlock();
    const later = await starter(data);
    assert.equal(await later.lock(), 'locked');
    const database = openDatabase({ embeddedPath: data });
    await assert.rejects(database, (error) => String(error) === inUse(data), 'a database is locked in the same way');
    await later.kill();
  });
});

test('a process that has the folder open cannot open it once more, and can when it was closed', async () => {
  await inFolder(async (data) => {
    await fillEmbedded(data);
    const database = await openDatabase({ embeddedPath: data });
    await assert.rejects(openDatabase({ embeddedPath: data }), (error) => String(error) === inUse(data));
    await database.close();
    await (await openDatabase({ embeddedPath: data })).close();
  });
});

test('a process of an older release, which listens on a socket in the folder, is found', async () => {
  await inFolder(async (data) => {
    await fillEmbedded(data);
    const server = net.createServer((socket) => socket.destroy());
    server.listen(path.relative(process.cwd(), path.join(data, 'in-use.sock')));
    await once(server, 'listening');
    await assert.rejects(openDatabase({ embeddedPath: data }), (error) => String(error) === inUse(data));
    server.close();
    await once(server, 'close');
    await (await openDatabase({ embeddedPath: data })).close();
  });
});
