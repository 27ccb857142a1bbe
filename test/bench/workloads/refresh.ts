import pg from 'pg';
import { quantile } from '../closed_loop.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { touchInventories } from '../load_by_sql.ts';
import { type Concurrency, inName, type Measurement, measure } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { anyUpTo, type Conditions, expectStatus, type Workload } from './workload.ts';

/** The read after another program changed 1 to 1,000 providers. */
export const refreshes: readonly Workload[] = [1, 10, 100, 1000].map((changed) => refreshing(changed, 1));

/**
 * The first read after another program has changed some providers. A server that keeps providers in memory must read
 * these again. The time is that of the read. The CPU time of the database also includes the change.
 */
export function refreshing(changed: number, concurrency: Concurrency): Workload {
  return {
    name: `refresh: the read after ${changed} changed provider${changed === 1 ? '' : 's'}, ${inName(concurrency)}`,
    dataSet: 'flat',
    grows: true,
    run: async (server, conditions) => {
      const databaseUrl = server.databaseUrl();
      if (databaseUrl === undefined || changed > conditions.providers) return undefined;
      // The connections stay open, because opening one costs PostgreSQL more than a change. There is one for each
      // process, so that the rate of the changes does not limit several processes.
      const pool = new pg.Pool({ connectionString: databaseUrl, max: server.urls().length, idleTimeoutMillis: 0 });
      const query = async (statement: string) => (await pool.query(statement)).rows;
      const change = () => touchInventories(query, flatHost, anyUpTo(conditions.providers - changed + 1), changed);
      try {
        return await readAfter(change, server, concurrency, conditions);
      } finally {
        await pool.end();
      }
    },
  };
}

async function readAfter(
  change: () => Promise<void>,
  server: MeasuredServer,
  concurrency: Concurrency,
  { durationMs, providers }: Conditions,
): Promise<Measurement> {
  const timesMs: number[] = [];
  const measured = await measure(server, concurrency, { durationMs }, async (connection) => {
    await change();
    const begun = performance.now();
    const path = `/resource_providers/${providerUuid(flatHost.kind, anyUpTo(providers))}/usages`;
    expectStatus((await connection.send('GET', path)).status, 200);
    timesMs.push(performance.now() - begun);
  });
  return {
    ...measured,
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
    perSecond: (timesMs.length * 1000) / timesMs.reduce((sum, time) => sum + time, 0),
  };
}
