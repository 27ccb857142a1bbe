import { lstat, mkdir, unlink } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep, setImmediate as untilIdle } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import type pg from 'pg';
import { folderFailure, startFailure } from './embedded_failures.ts';

/** A running embedded PostgreSQL. */
export type Embedded = { readonly poolConfig: pg.PoolConfig; close(): Promise<void> };

/**
 * PostgreSQL's cache. With its default of 128 MB the process used 97 MB more memory from the start, and nothing was
 * faster.
 */
const sharedBuffers = '32MB';

/**
 * Starts the embedded PostgreSQL (PGlite, in this process) in its folder, which is created if it does not exist. The
 * process does not end until it is closed.
 *
 * @throws Error with the remedy if another process uses the folder, or it cannot be used.
 */
export async function openEmbedded(settings: {
  readonly embeddedPath: string;
  readonly template?: Blob;
}): Promise<Embedded> {
  const inMemory = settings.embeddedPath.startsWith('memory://');
  const unlock = inMemory
    ? async () => {}
    : await lockFolder(settings.embeddedPath).catch((error: unknown) => {
        throw folderFailure(settings.embeddedPath, error);
      });
  try {
    const pglite = await PGlite.create({
      dataDir: inMemory ? 'memory://' : path.join(settings.embeddedPath, 'postgresql'),
      ...(settings.template === undefined ? {} : { loadDataDir: settings.template }),
      startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${sharedBuffers}`],
    });
    return {
      // There is a single connection. Statements wait for it in the queue of the pool, without a time limit.
      poolConfig: { ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0 } as pg.PoolConfig,
      close: async () => {
        // After an error the client sends one more message without waiting for its answer. PGlite must still be open to
        // answer it.
        await untilIdle();
        await pglite.close();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw startFailure(settings.embeddedPath, error);
  }
}

/**
 * Lets one process at a time use the folder: that process listens on a socket in it. Unlike a file with a process id, a
 * socket tells whether the process still runs, also after a kill -9, a reboot, or in a container where every process
 * has the same id.
 */
async function lockFolder(folder: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = socketPath(folder);
  if (await answers(file)) throw inUse(folder);
  await unlink(file).catch(() => {});
  const server = net.createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'EADDRINUSE' ? inUse(folder) : error));
    server.listen(file, resolve);
  });
  server.unref();
  // Two processes may have found the same dead socket, and the later one has then removed the socket of the earlier
  // one. The process whose socket was replaced gives up.
  const { ino } = await lstat(file);
  await sleep(50);
  const still = await lstat(file).catch(() => undefined);
  if (still?.ino !== ino) {
    server.close();
    throw inUse(folder);
  }
  return () => new Promise((resolve) => server.close(() => resolve()));
}

const inUse = (folder: string) =>
  new Error(
    `The embedded database in ${folder} is in use by another process. Stop that process, or set ` +
      '[placement_database] embedded_path to another folder, or connection to a PostgreSQL server for several processes.',
  );

/** Socket paths are limited to about 100 bytes, so the shorter of the absolute and the relative path is used. */
function socketPath(folder: string): string {
  const absolute = path.resolve(folder, 'in-use.sock');
  const relative = path.relative(process.cwd(), absolute);
  const shorter = relative.length < absolute.length ? relative : absolute;
  if (Buffer.byteLength(shorter) > 100) {
    throw new Error(
      `The path of the embedded database is too long: ${folder}. Set [placement_database] embedded_path to a shorter one.`,
    );
  }
  return shorter;
}

function answers(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(file);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
