import { lstat, mkdir, unlink } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep, setImmediate as untilIdle } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import type pg from 'pg';
import { folderFailure, startFailure } from './embedded_failures.ts';

/** An embedded PostgreSQL that runs. */
export type Embedded = { readonly poolConfig: pg.PoolConfig; close(): Promise<void> };

/** PostgreSQL's cache. Its default of 128 MB took 97 MB more of the process from the start, and made nothing faster. */
const sharedBuffers = '32MB';

/**
 * Starts the embedded PostgreSQL (PGlite, in this process) on its folder, or makes the folder. It must be closed, or the
 * process stays.
 *
 * @throws Error with the remedy where another process has the folder, or it cannot be used.
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
      // One connection is all there is; waiting for it is the pool's queue, so there is no time-out.
      poolConfig: { ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0 } as pg.PoolConfig,
      close: async () => {
        // After an error the client sends one more message, which nobody waits for; PGlite must be there to answer it.
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
 * One process at a time: the holder listens on a socket in the folder. Unlike a file with a process id, a socket tells
 * whether its holder lives, also after a kill -9, a reboot, or in a container where every process has the same id.
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
  // Two processes may both have found a dead socket: the one whose own was taken away meanwhile gives way.
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

/** Socket paths are limited to about 100 bytes, so the shorter of the two spellings is used. */
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
