import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Config } from '../../src/config/config.ts';
import type { Engine } from '../engines.ts';
import { createDatabase } from '../postgresql.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { fillEmbedded } from '../templates.ts';
import { type BadNetwork, openBadNetwork } from './bad_network.ts';
import { type RestartablePostgresql, startRestartable } from './restartable_postgresql.ts';

const run = promisify(execFile);

/** One process of the service. Its address stays the same when it is started again. */
export type Server = {
  readonly url: string;
  /** The way of its clients. */
  readonly network: BadNetwork;
  readonly pid: number;
  /** The errors that all its processes have logged. */
  log(): string;
  kill(): Promise<void>;
  /** Starts it again. @param nodeArguments of this process */
  start(nodeArguments?: readonly string[]): Promise<void>;
};

/** The service with its database: one process on the embedded one, two on PostgreSQL. */
export type Deployment = {
  readonly servers: readonly Server[];
  readonly database?: {
    readonly postgresql: RestartablePostgresql;
    /** The way from the servers to the database. */
    readonly network: BadNetwork;
    /** Another program's connection to the database of the service. */
    connect(): Promise<pg.Client>;
  };
  /** A file system of its own with the data. Undefined where this process may not mount one. */
  readonly disk?: string | undefined;
  close(): Promise<void>;
};

/** Ends a part of a deployment. */
type End = () => unknown;

export async function deploy(engine: Engine): Promise<Deployment> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-soak-'));
  await chmod(folder, 0o755); // the user that PostgreSQL runs as goes through it
  const disk = await mountDisk(path.join(folder, 'disk'));
  const place = disk ?? folder;
  const ends: End[] = [];
  const close = async (): Promise<void> => {
    for (const end of ends.toReversed()) await end();
    if (disk !== undefined) await run('umount', ['--lazy', disk]);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const database = engine === 'postgresql' ? await openDatabase(place, ends) : undefined;
    const config: Partial<Config['placementDatabase']> =
      database === undefined
        ? { embeddedPath: path.join(place, 'data') }
        : { connection: database.url, syncOnStartup: true };
    if (database === undefined) await fillEmbedded(path.join(place, 'data'));
    const servers: Server[] = [];
    for (let started = 0; started < (database === undefined ? 1 : 2); started += 1) {
      servers.push(await openServer(config, ends));
    }
    return { servers, ...(database === undefined ? {} : { database }), disk, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openDatabase(place: string, ends: End[]) {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = place; // the server makes its folder there
  const postgresql = await startRestartable();
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  ends.push(() => postgresql.stop());
  // Not from the template of the tests: after a crash PostgreSQL gives the first ids of a copied sequence again.
  const { url } = await createDatabase(postgresql.url);
  const network = await openBadNetwork(Number(new URL(url).port));
  ends.push(() => network.close());
  const through = new URL(url);
  through.port = `${network.port}`;
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {}); // the server may be ended meanwhile
    await client.connect();
    return client;
  };
  return { postgresql, network, connect, url: through.href };
}

async function openServer(config: Partial<Config['placementDatabase']>, ends: End[]): Promise<Server> {
  let process_: ServerProcess = await startServer(config);
  let earlier = '';
  const network = await openBadNetwork(Number(new URL(process_.url).port));
  ends.push(async () => {
    network.close();
    await process_.kill();
  });
  return {
    url: `http://127.0.0.1:${network.port}`,
    network,
    get pid() {
      return process_.pid;
    },
    log: () => earlier + process_.log(),
    kill: () => process_.kill(),
    start: async (nodeArguments = []) => {
      earlier += process_.log();
      process_ = await startServer(config, nodeArguments);
      network.lead(Number(new URL(process_.url).port));
    },
  };
}

/** A small file system in memory. Undefined where this process may not mount it. */
async function mountDisk(folder: string): Promise<string | undefined> {
  await mkdir(folder);
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=512m,mode=1777', 'placement-soak', folder]);
    return folder;
  } catch {
    return undefined;
  }
}

/** How many files a process has open. */
export const openFilesOf = async (pid: number): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;
