import assert from 'node:assert/strict';
import { type CommandWorld, startCommand, withCommands } from '../manage/commands.ts';
import { openClient } from '../races/client.ts';
import { execute } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import { buildStock, checkLoad, type Load, type Stock } from './load.ts';

type LogLine = Readonly<Record<string, unknown>>;

/** A running service with workers. */
export type WorkersService = {
  readonly url: string;
  readonly server: ReturnType<typeof startCommand>;
  /** The log so far. */
  log(): readonly LogLine[];
  /** The process id of each worker that has started. */
  pids(): ReadonlyMap<number, number>;
};

/** Starts a service, and waits until all workers serve. */
export async function start({ folder, configFile }: CommandWorld, workers: number): Promise<WorkersService> {
  const args = ['--config-file', configFile, '--workers', String(workers)];
  const server = startCommand('placement-api', args, folder);
  const [, url = ''] = await server.said(/^placement-api \d\S* listens on (http:\/\/\S+)\n/m);
  const lines: LogLine[] = [];
  let parsed = 0;
  /** Parses only what is new: under load there are thousands of lines, and tests ask every 20 ms. */
  const log = () => {
    const text = server.log();
    const end = text.lastIndexOf('\n') + 1;
    for (const line of text.slice(parsed, end).split('\n')) {
      if (line.startsWith('{') && line.endsWith('}')) lines.push(JSON.parse(line));
    }
    parsed = end;
    return lines;
  };
  const pids = () =>
    new Map<number, number>(
      log().flatMap(({ msg, worker, pid }) => (msg === 'This worker serves' ? [[Number(worker), Number(pid)]] : [])),
    );
  await until('all workers have said that they serve', () => pids().size === workers);
  return { url, server, log, pids };
}

/** The process id of a worker. */
export function pidOf(service: WorkersService, worker: number): number {
  const pid = service.pids().get(worker);
  assert.ok(pid, `worker ${worker} serves`);
  return pid;
}

/** Calls back with a service on a fresh database. */
export const withWorkers = (workers: number, use: (service: WorkersService, world: CommandWorld) => Promise<void>) =>
  withCommands('postgresql', 'migrated', async (world) => use(await start(world, workers), world));

/** Checks that the database has what the load has made. */
export async function checkDatabase({ config }: CommandWorld, load: Load, stock: Stock): Promise<void> {
  await checkLoad(async (statement) => (await execute(config.connection ?? '', statement)).rows, load, stock);
}

/** Makes the resource providers of a load. */
export async function buildStockAt(url: string): Promise<Stock> {
  const client = openClient(url);
  const stock = await buildStock(client);
  client.close();
  return stock;
}

/** Ends a service in order. */
export async function end({ server }: WorkersService): Promise<void> {
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
}
