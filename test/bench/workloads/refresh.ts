import { quantile } from '../closed_loop.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { touchInventories } from '../load_by_sql.ts';
import { measure } from '../measure.ts';
import { anyUpTo, expectStatus, type Workload } from './workload.ts';

/**
 * The first read after another program has changed some providers: a server that keeps them in memory reads these again.
 * The time is that of the read; the database's CPU time has the change in it, too.
 */
export const refreshes: readonly Workload[] = [1, 10, 100, 1000].map((changed) => ({
  name: `refresh: the read after ${changed} changed provider${changed === 1 ? '' : 's'}, c1`,
  dataSet: 'flat',
  grows: true,
  run: async (server, { durationMs, providers }) => {
    const query = server.query();
    if (query === undefined || changed > providers) return undefined;
    const timesMs: number[] = [];
    const measured = await measure(server, 1, { durationMs }, async (connection) => {
      await touchInventories(query, flatHost, changed);
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
  },
}));
