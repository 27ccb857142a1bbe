import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'kysely';
import { type DatabaseSettings, openDatabase } from '../../db/engine/connect.ts';
import type { Query } from '../races/server_process.ts';
import { createDatabase, execute, type FreshDatabase } from '../support/postgresql.ts';
import { fillEmbedded, postgresqlTemplate } from '../support/templates.ts';
import type { MeasuredServer } from './measured_server.ts';
import { type PlacementApi, startPlacementApi } from './placement_api.ts';

/**
 * Candidates are in random order, as in upstream's own performance job. Otherwise all schedulers would take the first
 * host.
 */
const config = '[placement]\nrandomize_allocation_candidates = true';

/** Where a measured server has its database. */
type Databases = {
  /** Drops the former database, and makes an empty one with the schema. */
  renew(): Promise<void>;
  settings(): DatabaseSettings;
  remove(): Promise<void>;
};

/** Our service: `processes` processes on a PostgreSQL server. Each fill has its own database. */
export async function ownOnPostgresql(
  name: string,
  postgresqlUrl: string,
  processes: number,
  profileFolder?: string,
): Promise<MeasuredServer> {
  let database: FreshDatabase | undefined;
  const databases: Databases = {
    renew: async () => {
      await database?.drop();
      database = await createDatabase(postgresqlUrl, await postgresqlTemplate(postgresqlUrl));
    },
    settings: () => ({ connection: database?.url ?? '', maxPoolSize: 1 }),
    remove: async () => {
      await database?.drop();
    },
  };
  return ownServer(name, databases, processes, await firstProcess(postgresqlUrl), profileFolder);
}

/** Our service on the embedded database, in a temporary folder. */
export function ownOnEmbedded(name: string, profileFolder?: string): MeasuredServer {
  let folder = '';
  const remove = () => rm(folder, { recursive: true, force: true });
  const databases: Databases = {
    renew: async () => {
      await remove();
      folder = await mkdtemp(path.join(os.tmpdir(), 'placement-bench-data-'));
      await fillEmbedded(folder);
    },
    settings: () => ({ embeddedPath: folder }),
    remove,
  };
  return ownServer(name, databases, 1, undefined, profileFolder);
}

/** The server is stopped while it is filled, because only one process can open the embedded database. */
function ownServer(
  name: string,
  databases: Databases,
  processes: number,
  databasePid: number | undefined,
  profileFolder: string | undefined,
): MeasuredServer {
  let running: readonly PlacementApi[] = [];
  const stop = async (): Promise<void> => {
    const stopped = running;
    running = [];
    await Promise.all(stopped.map((api) => api.stop()));
  };
  const start = async (): Promise<void> => {
    const options = { config, ...(profileFolder === undefined ? {} : { profileFolder }) };
    for (let started = 0; started < processes; started += 1) {
      running = [...running, await startPlacementApi(databases.settings(), options)];
    }
  };
  return {
    name,
    urls: () => running.map(({ url }) => url),
    pids: () => running.map(({ pid }) => pid),
    databasePid,
    databaseUrl: () => {
      const settings = databases.settings();
      return 'connection' in settings ? settings.connection : undefined;
    },
    fill: async (load) => {
      await stop();
      await databases.renew();
      await withSql(databases.settings(), load);
      await start();
    },
    restart: async () => {
      await stop();
      const started = performance.now();
      await start();
      return { startMs: performance.now() - started };
    },
    close: async () => {
      await stop();
      await databases.remove();
    },
  };
}

/** Runs SQL on a PostgreSQL database, each statement over its own connection. */
export const queryOn =
  (url: string): Query =>
  async (statement) =>
    (await execute(url, statement)).rows;

/** The first process of a PostgreSQL server on this machine, whose children are the others. */
export async function firstProcess(url: string): Promise<number> {
  // The PID is in the first line of postmaster.pid, which only a superuser can read.
  const { rows } = await execute(url, `select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid`);
  return Number(rows[0]?.pid);
}

async function withSql(settings: DatabaseSettings, use: (query: Query) => Promise<void>): Promise<void> {
  const database = await openDatabase(settings);
  try {
    await use(async (statement) => (await sql.raw<Record<string, unknown>>(statement).execute(database.kysely)).rows);
  } finally {
    await database.close();
  }
}
