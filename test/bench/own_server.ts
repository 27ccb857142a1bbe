import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'kysely';
import { type DatabaseSettings, openDatabase } from '../../db/connect.ts';
import { createDatabase, execute, type FreshDatabase } from '../postgresql.ts';
import type { Query } from '../races/server_process.ts';
import { fillEmbedded, postgresqlTemplate } from '../templates.ts';
import type { MeasuredServer } from './measured_server.ts';
import { type PlacementApi, startPlacementApi } from './placement_api.ts';

/** In random order, as upstream's own performance job has it: schedulers would all take the first host otherwise. */
const config = '[placement]\nrandomize_allocation_candidates = true';

type Place = {
  /** An empty database with the schema; the former one is dropped. */
  renew(): Promise<void>;
  settings(): DatabaseSettings;
  remove(): Promise<void>;
};

/** Our service: `processes` of it on a PostgreSQL server, each fill in a database of its own. */
export async function ownOnPostgresql(
  name: string,
  postgresqlUrl: string,
  processes: number,
  profileFolder?: string,
): Promise<MeasuredServer> {
  let database: FreshDatabase | undefined;
  const place: Place = {
    renew: async () => {
      await database?.drop();
      database = await createDatabase(postgresqlUrl, await postgresqlTemplate(postgresqlUrl));
    },
    settings: () => ({ connection: database?.url ?? '', maxPoolSize: 1 }),
    remove: async () => {
      await database?.drop();
    },
  };
  return ownServer(name, place, processes, await firstProcess(postgresqlUrl), profileFolder);
}

/** Our service on the embedded database, in a temporary folder. */
export function ownOnEmbedded(name: string, profileFolder?: string): MeasuredServer {
  let folder = '';
  const remove = () => rm(folder, { recursive: true, force: true });
  const place: Place = {
    renew: async () => {
      await remove();
      folder = await mkdtemp(path.join(os.tmpdir(), 'placement-bench-data-'));
      await fillEmbedded(folder);
    },
    settings: () => ({ embeddedPath: folder }),
    remove,
  };
  return ownServer(name, place, 1, undefined, profileFolder);
}

/** It is filled while it does not run: the embedded database is for a single process. */
function ownServer(
  name: string,
  place: Place,
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
      running = [...running, await startPlacementApi(place.settings(), options)];
    }
  };
  return {
    name,
    urls: () => running.map(({ url }) => url),
    pids: () => running.map(({ pid }) => pid),
    databasePid,
    databaseUrl: () => {
      const settings = place.settings();
      return 'connection' in settings ? settings.connection : undefined;
    },
    fill: async (load) => {
      await stop();
      await place.renew();
      await withSql(place.settings(), load);
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
      await place.remove();
    },
  };
}

/** SQL on a PostgreSQL database, each statement over a connection of its own. */
export const queryOn =
  (url: string): Query =>
  async (statement) =>
    (await execute(url, statement)).rows;

/** The first process of a PostgreSQL server on this machine, whose children are the others. */
export async function firstProcess(url: string): Promise<number> {
  // The first line of postmaster.pid; only a superuser may read it.
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
