import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { databaseUrl, execute, startPostgresql } from '../support/postgresql.ts';
import { flatHost } from './data_set.ts';
import { loadTrees } from './load_by_sql.ts';
import { ownOnPostgresql } from './own_server.ts';
import { nowUs, partsOf, type Stretch } from './profile_parts.ts';
import { flatCandidates } from './workloads/candidates.ts';
import { claims } from './workloads/claims.ts';
import { creating } from './workloads/creating.ts';
import { limitedClaims } from './workloads/limits.ts';
import { placing } from './workloads/placing.ts';
import { reads } from './workloads/reads.ts';
import { schedulerLoop } from './workloads/scheduler_loop.ts';
import { waiting } from './workloads/waiting.ts';
import type { Workload } from './workloads/workload.ts';

/*
 * What a call costs on PostgreSQL: statements, CPU time of server and database, and the share of each part of the
 * server in its CPU time. The server is started again for each workload, with a profiler, which itself adds to the CPU
 * time.
 *
 *     node test/bench/cost_of_calls.ts [regular expression of workloads] [providers] [seconds]
 */

const [wanted = '^W2.*limit=100|^W4 claims|^W6|^W1', count = '1000', seconds = '3'] = process.argv.slice(2);
const providers = Number(count);
const durationMs = 1000 * Number(seconds);
const workloads = [
  creating,
  ...flatCandidates,
  ...claims,
  limitedClaims(32, 100),
  ...waiting,
  ...placing,
  schedulerLoop,
  ...reads,
].filter(({ name }) => new RegExp(wanted).test(name));

const postgresql = await startPostgresql({
  durable: true,
  settings: { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'top' },
});
await execute(postgresql.url, 'create extension pg_stat_statements');
const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-profiles-'));
try {
  for (const workload of workloads) await tellCost(workload);
} finally {
  await rm(folder, { recursive: true, force: true });
  await postgresql.stop();
}

async function tellCost(workload: Workload): Promise<void> {
  const profileFolder = await mkdtemp(path.join(folder, 'profile-'));
  const server = await ownOnPostgresql('postgresql', postgresql.url, 1, profileFolder);
  let stretch: Stretch;
  try {
    await server.fill((query) => loadTrees(query, [flatHost], providers));
    await execute(postgresql.url, 'select pg_stat_statements_reset()');
    const fromUs = nowUs() + 250 * durationMs; // after the warm-up
    const measured = await workload.run(server, { providers, durationMs });
    stretch = { fromUs, toUs: fromUs + 1000 * durationMs };
    const { perSecond, p50Ms, serverCpuMs, databaseCpuMs, note } = measured ?? {};
    console.log(`\n${workload.name}: ${perSecond?.toFixed(0)}/s, ${p50Ms?.toFixed(2)} ms, ${note ?? 'no body'}`);
    console.log(`  CPU ms per operation: server ${serverCpuMs?.toFixed(2)}, database ${databaseCpuMs?.toFixed(2)}`);
    await tellStatements();
  } finally {
    await server.close();
  }
  const [profile = ''] = await readdir(profileFolder);
  const parts = await partsOf(path.join(profileFolder, profile), stretch);
  const summary = parts.slice(0, 12).map(([part, share]) => `${part} ${(share * 100).toFixed(0)} %`);
  console.log(`  server: ${summary.join(', ')}`);
}

/** Prints the statements that ran most often in the measurement, its warm-up and the cleaning up of the workload. */
async function tellStatements(): Promise<void> {
  const { rows } = await execute(
    databaseUrl(postgresql.url, 'postgres'),
    `select calls, (total_exec_time / calls)::numeric(9, 3) as ms, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) as query
    from pg_stat_statements where query not like '%pg_stat_statements%' order by calls desc limit 12`,
  );
  for (const { calls, ms, query } of rows) console.log(`  ${String(calls).padStart(8)} x ${ms} ms  ${query}`);
}
