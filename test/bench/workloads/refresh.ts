import pg from 'pg';
import { quantile } from '../closed_loop.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { touchInventories } from '../load_by_sql.ts';
import { type Measurement, measure } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { anyUpTo, type Conditions, expectStatus, type Workload } from './workload.ts';

/**
 * The first read after another program has changed some providers. A server that keeps providers in memory must read
 * these again. The time is that of the read. The CPU time of the database also includes the change.
 */
export const refreshes: readonly Workload[] = [1, 10, 100, 1000].map((changed) => ({
  name: `refresh: the read after ${changed} changed provider${changed === 1 ? '' : 's'}, c1`,
  dataSet: 'flat',
  grows: true,
  run: async (server, conditions) => {
    const databaseUrl = server.databaseUrl();
    if (databaseUrl === undefined || changed > conditions.providers) return undefined;
    // One connection makes all changes, because opening a connection costs PostgreSQL more than a change.
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      return await readAfter(() => touchInventories(queryOf(client), flatHost, changed), server, conditions);
    } finally {
      await client.end();
    }
  },
}));

const queryOf = (client: pg.Client) => async (statement: string) => (await client.query(statement)).rows;

async function readAfter(
  change: () => Promise<void>,
  server: MeasuredServer,
  { durationMs, providers }: Conditions,
): Promise<Measurement> {
  const timesMs: number[] = [];
  const measured = await measure(server, 1, { durationMs }, async (connection) => {
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
