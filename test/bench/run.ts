import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { createDatabase, execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { postgresqlTemplate } from '../support/templates.ts';
import { measureLimits, measureServers, type Report } from './benchmark.ts';
import { type Endured, endure } from './endure/endure.ts';
import { reportLines } from './endure/report.ts';
import { claimBatchLimits } from './limits/claim_batch.ts';
import { claimStatementLimits } from './limits/claim_statement.ts';
import { httpLimits } from './limits/http_put.ts';
import { jsonLimits } from './limits/json_answer.ts';
import type { MeasuredServer } from './measured_server.ts';
import { type Footprint, footprintLine } from './memory.ts';
import { readOptions } from './options.ts';
import { firstProcess, ownOnEmbedded, ownOnPostgresql } from './own_server.ts';
import { runningServer } from './running_server.ts';
import { costTable, growthLines, heading, line, type Row } from './table.ts';
import { allWorkloads, sharedWorkloads } from './workloads/all.ts';

/* The project's own benchmark: `npm run bench -- --help`. docs/performance.md says what its figures mean. */

const options = readOptions(process.argv.slice(2));
const servers: MeasuredServer[] = [];
const rows: Row[] = [];
const footprints: Footprint[] = [];
let endured: Endured | undefined;
let machine: Readonly<Record<string, string>> = {};
const report: Report = {
  row: (row, first) => {
    rows.push(row);
    console.log(line(row, first));
    save();
  },
  footprint: (footprint) => {
    footprints.push(footprint);
    console.log(footprintLine(footprint));
    save();
  },
};

let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = true;
    closeAll().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  });
}

const postgresql: PostgresqlServer =
  options.postgresql === undefined
    ? await startPostgresql({ durable: true, settings: { max_connections: '400' } })
    : { url: options.postgresql, stop: async () => {} };
try {
  await run(postgresql);
} catch (error) {
  // After Ctrl-C everything is being closed, so errors are expected.
  if (!interrupted) throw error;
} finally {
  if (!interrupted) await closeAll();
}

async function run({ url }: PostgresqlServer): Promise<void> {
  machine = await describeMachine(url);
  if (options.endureMs !== undefined) {
    await measureLong(url, options.endureMs);
    return;
  }
  console.log(`${Object.values(machine).join('\n')}\n\n${heading}`);
  if (options.processes !== undefined) {
    await measureProcesses(url, options.processes);
    return;
  }
  for (const running of options.running) servers.push(await runningServer(running));
  for (const own of options.own) {
    if (own === 'embedded') servers.push(ownOnEmbedded(own, options.profileFolder));
    else servers.push(await ownOnPostgresql(own, url, own === 'postgresql' ? 1 : 2, options.profileFolder));
  }
  await measureServers(servers, allWorkloads, options, report);
  const pid = await firstProcess(url);
  await withScratch(url, async (one) =>
    withScratch(url, async (other) => {
      const ofDatabase = [...(await claimStatementLimits(one, pid)), ...claimBatchLimits(other, pid)];
      await measureLimits([...ofDatabase, ...httpLimits, ...jsonLimits], options, report);
    }),
  );
  const growth = growthLines(rows);
  if (growth.length > 0) console.log(`\n${'growth'.padEnd(71)}      CPU     time\n${growth.join('\n')}`);
}

/** Calls back with the URL of a database with our schema, and drops it in the end. */
async function withScratch(serverUrl: string, use: (url: string) => Promise<void>): Promise<void> {
  const { url, drop } = await createDatabase(serverUrl, await postgresqlTemplate(serverUrl));
  try {
    await use(url);
  } finally {
    await drop();
  }
}

async function measureProcesses(url: string, counts: readonly number[]): Promise<void> {
  process.setMaxListeners(0); // each server that was started listens for the end of this process
  for (const count of counts) {
    const name = `${count} process${count === 1 ? '' : 'es'}`;
    servers.push(await ownOnPostgresql(name, url, count, options.profileFolder));
  }
  await measureServers(servers, sharedWorkloads, options, report);
  console.log(`\n${costTable(rows).join('\n')}`);
}

async function measureLong(url: string, durationMs: number): Promise<void> {
  const { processors, software, durability } = machine;
  const [providers = 0] = options.sizes;
  const description = `${durationMs / 1000} s with ${providers} hosts, two processes, begun ${new Date().toISOString()}`;
  console.log([processors, software, durability, description, ''].join('\n'));
  const server = await ownOnPostgresql('two processes', url, 2, options.profileFolder);
  servers.push(server);
  endured = await endure(server, providers, durationMs);
  save();
  console.log(reportLines(endured.first, endured.last).join('\n'));
}

/** Saves the results after each one, because a run takes long and may be ended early. */
function save(): void {
  if (options.json === undefined) return;
  writeFileSync(options.json, `${JSON.stringify({ machine, rows, footprints, endured }, undefined, 1)}\n`);
}

/** The properties of the machine that the figures depend on. */
async function describeMachine(postgresqlUrl: string): Promise<Readonly<Record<string, string>>> {
  const show = async (setting: string) => (await execute(postgresqlUrl, `show ${setting}`)).rows[0]?.[setting];
  const processors = os.cpus();
  return {
    processors: `${processors.length} x ${processors[0]?.model.trim()}, ${(os.totalmem() / 1e9).toFixed(0)} GB of memory`,
    software: `Node.js ${process.version}, PostgreSQL ${await show('server_version')}, ${os.type()} ${os.release()}`,
    durability: `fsync ${await show('fsync')}, synchronous_commit ${await show('synchronous_commit')}`,
    measured:
      `${options.rounds} x ${options.durationMs / 1000} s each; load average ${os.loadavg()[0]?.toFixed(1)} at ` +
      `${new Date().toISOString()}`,
  };
}

async function closeAll(): Promise<void> {
  await Promise.allSettled(servers.map((server) => server.close()));
  await postgresql.stop();
}
