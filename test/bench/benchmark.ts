import { computeNodeTree, flatHost } from './data_set.ts';
import type { Limit } from './limits/limit.ts';
import { loadTrees } from './load_by_sql.ts';
import { type Measurement, medians } from './measure.ts';
import type { MeasuredServer } from './measured_server.ts';
import { type Footprint, freshFootprint, usedFootprint } from './memory.ts';
import type { Options } from './options.ts';
import type { Row } from './table.ts';
import { claiming } from './workloads/claims.ts';
import { creating } from './workloads/creating.ts';
import { readingProviders } from './workloads/reads.ts';
import { knowsVersion, type Workload } from './workloads/workload.ts';

/** Receives each result as soon as it is known. `first` is the row of the first server for the same workload. */
export type Report = {
  row(row: Row, first: Row | undefined): void;
  footprint(footprint: Footprint): void;
};

/** Measures the workloads on all servers, at every size. */
export async function measureServers(
  servers: readonly MeasuredServer[],
  workloads: readonly Workload[],
  options: Options,
  report: Report,
): Promise<void> {
  const wanted = workloads.filter(({ name }) => options.only.test(name));
  const footprints = options.processes === undefined && options.only.test('W7');
  for (const size of options.sizes) {
    const flat = wanted.filter(
      ({ dataSet, grows = false, largest = Number.POSITIVE_INFINITY }) =>
        dataSet === 'flat' && (grows || size === options.sizes[0]) && size <= largest,
    );
    if (flat.length === 0 && !footprints) continue;
    for (const server of servers) await server.fill((query) => loadTrees(query, [flatHost], size));
    for (const server of footprints ? servers : []) {
      const footprint = await freshFootprint(server, size);
      if (footprint !== undefined) report.footprint(footprint);
    }
    for (const server of servers) await warmUp(server, size, options.warmUpMs);
    for (const workload of flat) await measureWorkload(workload, servers, size, options, report);
    for (const server of footprints ? servers : []) report.footprint(usedFootprint(server, size));
  }
  const nested = wanted.filter(({ dataSet }) => dataSet === 'nested');
  if (nested.length === 0) return;
  for (const server of servers) await server.fill((query) => loadTrees(query, computeNodeTree, options.trees));
  for (const workload of nested) await measureWorkload(workload, servers, options.trees, options, report);
}

/** Lets V8 compile what a process of the server does often. A process is new for each size, where its footprint is measured. */
async function warmUp(server: MeasuredServer, providers: number, durationMs: number): Promise<void> {
  if (durationMs === 0) return;
  for (const workload of [creating, claiming(32), readingProviders(8)]) {
    await workload.run(server, { providers, durationMs });
  }
}

/** The limits have no server and no providers, and there is nothing to compare them with. */
export async function measureLimits(limits: readonly Limit[], options: Options, report: Report): Promise<void> {
  for (const { name, run } of limits) {
    if (!options.only.test(name)) continue;
    const rounds: Measurement[] = [];
    for (let round = 0; round < options.rounds; round += 1) rounds.push(await run(options.durationMs));
    report.row({ workload: name, size: undefined, server: 'limit', medians: medians(rounds), rounds }, undefined);
  }
}

/** In each round the servers run one after the other, so that other load on the machine disturbs all of them alike. */
async function measureWorkload(
  workload: Workload,
  servers: readonly MeasuredServer[],
  size: number,
  { rounds, warmUpRounds, durationMs }: Options,
  report: Report,
): Promise<void> {
  const measured = servers.map((): Measurement[] => []);
  for (let round = 0; round < warmUpRounds + rounds; round += 1) {
    for (const [index, server] of servers.entries()) {
      if (workload.version !== undefined && !(await knowsVersion(server, workload.version))) continue;
      const measurement = await workload.run(server, { providers: size, durationMs });
      if (measurement !== undefined && round >= warmUpRounds) measured[index]?.push(measurement);
    }
  }
  const rows = servers.flatMap(({ name: server }, index): Row[] => {
    const made = measured[index] ?? [];
    return made.length === 0 ? [] : [{ workload: workload.name, size, server, medians: medians(made), rounds: made }];
  });
  for (const row of rows) report.row(row, rows[0]);
}
