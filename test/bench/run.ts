import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { type Engine, engines } from '../engines.ts';
import { createDatabase, startPostgresql } from '../postgresql.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { loadFlatHosts, loadTrees } from './data.ts';
import { type Measurement, measure } from './load.ts';
import { flatWorkloads, treeWorkloads, type Workload } from './workloads.ts';

/*
 * The project's own benchmark: a server in a process of its own, on the embedded database and on a PostgreSQL with default
 * durability, both fresh; closed loops over HTTP. Client, server and database share the machine.
 */

type Options = { readonly providers: number; readonly seconds: number; readonly json?: string };
type Row = Measurement & { readonly engine: Engine; readonly workload: string; readonly concurrency: number };

const positive = (text: string): number => {
  const value = Number(text);
  if (value > 0) return value;
  throw new InvalidArgumentError('It must be a positive number.');
};
const program = new Command('bench')
  .description('Measures the service on both databases.')
  .option('--providers <number>', 'hosts, and trees, in the data set', positive, 1000)
  .option('--seconds <number>', 'how long each workload is measured', positive, 2)
  .option('--json <file>', 'also write the figures there')
  .parse();
const { providers, seconds, json } = program.opts<Options>();

const rows: Row[] = [];
console.log(`${providers} hosts, ${seconds} s each\n\n${line('engine', 'workload', 'c', 'per s', 'p50 ms', 'p99 ms')}`);
for (const engine of engines) {
  const place = await placeFor(engine);
  await measureOn(engine, place.settings, loadFlatHosts, flatWorkloads);
  await place.reset();
  await measureOn(engine, place.settings, loadTrees, async (server) => treeWorkloads(server));
  await place.remove();
}
if (json !== undefined) await writeFile(json, `${JSON.stringify(rows, undefined, 2)}\n`);

async function measureOn(
  engine: Engine,
  settings: Parameters<typeof startServer>[0],
  load: typeof loadFlatHosts,
  workloadsOn: (server: ServerProcess) => Promise<readonly Workload[]>,
): Promise<void> {
  const server = await startServer(settings);
  try {
    await load(server.query, providers);
    for (const { name, concurrency, operation } of await workloadsOn(server)) {
      const row = { engine, workload: name, concurrency, ...(await measure(concurrency, seconds * 1000, operation)) };
      rows.push(row);
      const figures = [row.perSecond, row.p50Ms, row.p99Ms].map((figure) => figure.toFixed(figure < 100 ? 2 : 0));
      console.log(line(engine, name, String(concurrency), ...figures));
    }
  } finally {
    await server.kill();
  }
}

function line(engine: string, workload: string, ...figures: readonly string[]): string {
  return `${engine.padEnd(12)}${workload.padEnd(36)}${figures.map((figure) => figure.padStart(10)).join('')}`;
}

/** Where the data of an engine goes: settings for the server, and how to empty and to remove it. */
async function placeFor(engine: Engine) {
  if (engine === 'embedded') {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'bench-'));
    return {
      settings: { embeddedPath: folder },
      reset: () => rm(folder, { recursive: true, force: true }),
      remove: () => rm(folder, { recursive: true, force: true }),
    };
  }
  const postgresql = await startPostgresql({ durable: true });
  const database = await createDatabase(postgresql.url);
  const settings = { connection: database.url, syncOnStartup: true };
  return {
    settings,
    reset: async () => {
      await database.drop();
      settings.connection = (await createDatabase(postgresql.url)).url;
    },
    remove: () => postgresql.stop(),
  };
}
