import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type pg from 'pg';
import { type StandIn, servicePassword, settingsFor } from '../keystone/stand_in.ts';
import type { Engine } from '../support/engines.ts';
import { fillEmbedded } from '../support/templates.ts';
import { type BadNetwork, openBadNetwork } from './bad_network.ts';
import { type FakeClock, openFakeClock } from './fake_clock.ts';
import { type Logs, openLogs } from './logs.ts';
import { openPrimary, type Primary } from './primary.ts';
import { isHung, type ServiceProcess, type StartOptions, startService } from './service_process.ts';
import { canSlowDisk } from './slow_disk.ts';

const run = promisify(execFile);

/** One process of the service. Its address stays the same when it is started again. */
export type Server = {
  readonly url: string;
  /** The way of its clients. */
  readonly network: BadNetwork;
  readonly pid: number;
  kill(): Promise<void>;
  /** Starts it again after `kill`. If it ends by itself, it is restarted by itself, as systemd does. */
  start(options?: StartOptions): Promise<void>;
  /** The last output of each process that ended by itself. */
  readonly endings: readonly string[];
};

/** The service with its database: one process on the embedded one, two on PostgreSQL. Keystone knows its users. */
export type Deployment = {
  readonly servers: readonly Server[];
  readonly database?: {
    /** The server that the service writes to. */
    readonly primary: Primary;
    /** The way from the servers to the database. */
    readonly network: BadNetwork;
    /** Another program's connection to the database of the service. */
    connect(): Promise<pg.Client>;
  };
  readonly keystone: StandIn;
  /** A token of an administrator. */
  readonly token: string;
  /** All that the servers printed. */
  readonly logs: Logs;
  /** A file system of its own with the data. Undefined where this process may not mount one. */
  readonly disk: string | undefined;
  /** Undefined where the clocks of processes cannot be set. */
  readonly clock: FakeClock | undefined;
  /** Whether writes to the disk can be made slow. */
  readonly canSlowDisk: boolean;
  close(): Promise<void>;
};

/** Ends a part of a deployment. */
type End = () => unknown;

/** How long the token of the clients is valid. */
const tokenSeconds = 1_000_000;

export async function deploy(engine: Engine, keystone: StandIn): Promise<Deployment> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-soak-'));
  await chmod(folder, 0o755); // the user that PostgreSQL runs as goes through it
  const disk = await mountDisk(path.join(folder, 'disk'));
  const base = disk ?? folder;
  const ends: End[] = [];
  const close = async (): Promise<void> => {
    for (const end of ends.toReversed()) await end();
    if (disk !== undefined) await run('umount', ['--lazy', disk]);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const clock = await openFakeClock(folder);
    ends.push(() => clock?.close()); // when all processes have ended
    const password = `database-${randomUUID()}`;
    const token = keystone.issue({ user: 'soak', project: 'soak', roles: ['admin'], lifetime: tokenSeconds });
    const logs = openLogs(() => [servicePassword, password, token, ...keystone.ownTokens()]);
    const database = engine === 'postgresql' ? await openDatabase(base, password, ends) : undefined;
    if (database === undefined) await fillEmbedded(path.join(base, 'data'));
    const where =
      database === undefined
        ? `embedded_path = ${path.join(base, 'data')}`
        : `connection = ${database.url}\nsync_on_startup = true`;
    const configFile = path.join(folder, 'placement.conf');
    await writeFile(configFile, configText(where, keystone));
    const servers: Server[] = [];
    for (let started = 0; started < (database === undefined ? 1 : 2); started += 1) {
      servers.push(await openServer(configFile, logs, ends));
    }
    return {
      servers,
      ...(database === undefined ? {} : { database }),
      keystone,
      token,
      logs,
      disk,
      clock,
      canSlowDisk: canSlowDisk(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function configText(database: string, keystone: StandIn): string {
  const { username, userDomainName, projectName, projectDomainName } = settingsFor(keystone);
  return `[DEFAULT]
debug = true
[api]
port = 0
[placement_database]
${database}
[keystone_authtoken]
auth_url = ${keystone.url}/v3
username = ${username}
password = ${servicePassword}
user_domain_name = ${userDomainName}
project_name = ${projectName}
project_domain_name = ${projectDomainName}
`;
}

async function openDatabase(base: string, password: string, ends: End[]) {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = base; // the servers make their folders there
  ends.push(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const primary = await openPrimary(password);
  ends.push(() => primary.stop());
  const network = await openBadNetwork(primary.port);
  ends.push(() => network.close());
  const through = new URL(primary.serviceUrl);
  through.port = `${network.port}`;
  return { primary, network, connect: primary.connect, url: through.href };
}

async function openServer(configFile: string, logs: Logs, ends: End[]): Promise<Server> {
  let current: ServiceProcess = await startService(configFile, {}, logs.reader());
  const network = await openBadNetwork(Number(new URL(current.url).port));
  const endings: string[] = [];
  let isClosed = false;
  /** A process that is being started must be there before it is killed. */
  let starting: Promise<void> = Promise.resolve();

  const start = async (options: StartOptions): Promise<void> => {
    current = await startService(configFile, options, logs.reader()).catch((error: unknown) => {
      if (!isHung(error)) throw error;
      endings.push(error.message);
      return startService(configFile, options, logs.reader());
    });
    network.lead(Number(new URL(current.url).port));
    supervise(current);
  };
  const supervise = ({ ended }: ServiceProcess): void => {
    void ended.then((how) => {
      if (how === 'killed') return;
      endings.push(how.last);
      starting = startInTheEnd();
    });
  };
  const startInTheEnd = async (): Promise<void> => {
    while (!isClosed) {
      try {
        return await start({});
      } catch {
        await sleep(startAgainMs); // the disk is full, or the database is unavailable
      }
    }
  };

  supervise(current);
  ends.push(async () => {
    isClosed = true;
    network.close();
    await starting;
    await current.kill();
  });
  return {
    url: `http://127.0.0.1:${network.port}`,
    network,
    endings,
    get pid() {
      return current.pid;
    },
    kill: async () => {
      // It may have ended by itself just before: then the one that is started instead is meant.
      do await starting;
      while ((await current.kill()) !== 'killed');
    },
    start: (options = {}) => start(options),
  };
}

/** The time until the next attempt to start a process that ended by itself, in milliseconds. */
const startAgainMs = 500;

/** A small file system in memory. Undefined where this process may not mount it. */
async function mountDisk(folder: string): Promise<string | undefined> {
  await mkdir(folder);
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=768m,mode=1777', 'placement-soak', folder]);
    return folder;
  } catch {
    return undefined;
  }
}

/** How many files a process has open. */
export const openFilesOf = async (pid: number): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;

/**
 * Does something to a process. It may end by itself meanwhile, with or without a new one instead.
 *
 * @returns whether it was done to its end
 */
export async function toProcess(pid: number, act: (pid: number) => Promise<unknown>): Promise<boolean> {
  try {
    await act(pid);
    return true;
  } catch (error) {
    if ((await openFilesOf(pid).catch(() => 0)) > 0) throw error;
    return false;
  }
}
