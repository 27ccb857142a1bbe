import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { closedLoop, quantile } from '../closed_loop.ts';
import { flatHost } from '../data_set.ts';
import { loadTrees } from '../load_by_sql.ts';
import type { Measurement } from '../measure.ts';
import { queryOn } from '../own_server.ts';
import { cpuMs } from '../processes.ts';
import type { Limit } from './limit.ts';

/*
 * L1: a claim as one statement, without a service: nothing is checked, and there is no change log. pgbench makes the
 * load if it is installed. Otherwise this process does, which is slower.
 */

const providers = 1000;

/** Uses a database with our schema that nothing else uses. @returns the limits, at 8 and 32 connections */
export async function claimStatementLimits(databaseUrl: string, databasePid: number): Promise<readonly Limit[]> {
  let filled: Promise<void> | undefined;
  const byPgbench = await run('pgbench', ['--version']).then(
    () => true,
    () => false,
  );
  return [8, 32].map((connections) => ({
    name: `L1 a claim as one statement, by ${byPgbench ? 'pgbench' : 'this process'}, c${connections}`,
    run: async (durationMs) => {
      filled ??= fill(databaseUrl);
      await filled;
      const before = cpuMs([databasePid]);
      const make = byPgbench ? throughPgbench : throughPg;
      const made = await make(databaseUrl, connections, durationMs);
      return { ...made, serverCpuMs: Number.NaN, databaseCpuMs: (cpuMs([databasePid]) - before) / made.operations };
    },
  }));
}

async function fill(databaseUrl: string): Promise<void> {
  const query = queryOn(databaseUrl);
  await loadTrees(query, [flatHost], providers);
  for (const table of ['resource_providers', 'allocations']) await query(`alter table ${table} disable trigger user`);
}

type Made = Omit<Measurement, 'serverCpuMs' | 'databaseCpuMs'>;

const claim = (provider: string, consumer: string): string => `
  with provider as (
    update resource_providers set generation = generation + 1, updated_at = now()
    where id = ${provider} returning id),
  consumer as (
    insert into consumers (created_at, uuid, project_id, user_id, generation)
    select now(), ${consumer}, 1, 1, 1 from provider)
  insert into allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used)
  select now(), provider.id, ${consumer}, claimed.class, claimed.used
  from provider, (values (0, 1), (1, 256), (2, 10)) as claimed (class, used)`;

async function throughPgbench(databaseUrl: string, connections: number, durationMs: number): Promise<Made> {
  const script = path.join(os.tmpdir(), `placement-claim-${process.pid}.sql`);
  await writeFile(
    script,
    `\\set provider random(1, ${providers})\n\\set a random(1, 2147483647)\n\\set b random(1, 2147483647)\n` +
      `${claim(':provider', `'c' || :a || '-' || :b`).replaceAll('\n', ' ')};\n`,
  );
  // pgbench takes whole seconds. Below half a second each connection makes ten claims: such a run only shows whether it works.
  const length = durationMs < 500 ? ['-t', '10'] : ['-T', `${Math.round(durationMs / 1000)}`];
  const flags = ['-n', '-M', 'prepared', '-f', script, '-c', `${connections}`, '-j', '2', ...length];
  try {
    const { stdout } = await run('pgbench', [...flags, databaseUrl]);
    const figure = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1]);
    const operations = figure(/actually processed: (\d+)/);
    const p50Ms = figure(/latency average = ([\d.]+)/);
    return { perSecond: figure(/^tps = ([\d.]+)/m), p50Ms, p99Ms: Number.NaN, clientCpuMs: Number.NaN, operations };
  } finally {
    await rm(script, { force: true });
  }
}

async function throughPg(databaseUrl: string, connections: number, durationMs: number): Promise<Made> {
  const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: databaseUrl }));
  try {
    await Promise.all(clients.map((client) => client.connect()));
    const text = claim('$1::integer', '$2::text');
    const before = process.cpuUsage();
    const { timesMs, elapsedMs } = await closedLoop(clients, { durationMs }, async (client) => {
      const provider = 1 + Math.floor(Math.random() * providers);
      await client.query({ name: 'claim', text, values: [provider, randomUUID()] });
    });
    const { user, system } = process.cpuUsage(before);
    const operations = timesMs.length;
    return {
      perSecond: (operations * 1000) / elapsedMs,
      p50Ms: quantile(timesMs, 0.5),
      p99Ms: quantile(timesMs, 0.99),
      clientCpuMs: (user + system) / 1000 / operations,
      operations,
    };
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

const run = promisify(execFile);
