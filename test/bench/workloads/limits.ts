import { randomUUID } from 'node:crypto';
import { claimedResources, flatHost, project, providerUuid } from '../data_set.ts';
import { type Concurrency, inName, measure, withConnection } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { claimOn, release } from './claims.ts';
import { anyUpTo, expectStatus, type Workload } from './workload.ts';

const version = '2.7';

/** W11: claims of projects that have limits, which none of them reaches. A server without limits is not measured. */
export function limitedClaims(concurrency: Concurrency, projects: number): Workload {
  const named = projects === 1 ? 'a limited project' : `${projects} limited projects`;
  return {
    name: `W11 claims of ${named}, ${inName(concurrency)}`,
    dataSet: 'flat',
    version,
    run: async (server, { durationMs, providers }) => {
      const names = Array.from({ length: projects }, (_, number) => `${project}-${number}`);
      await setLimits(server, names);
      const consumers: string[] = [];
      let conflicts = 0;
      const measured = await measure(server, concurrency, { durationMs }, async (connection) => {
        const consumer = randomUUID();
        const name = names[anyUpTo(projects) - 1] ?? '';
        const body = claimOn(providerUuid(flatHost.kind, anyUpTo(providers)), name);
        const { status } = await connection.send('PUT', `/allocations/${consumer}`, body);
        expectStatus(status, 204, 409);
        if (status === 204) consumers.push(consumer);
        else conflicts += 1;
      });
      await release(server, consumers);
      await withConnection(server, async ({ send }) => {
        for (const name of names)
          expectStatus((await send('DELETE', `/limits/${name}`, '', false, version)).status, 204);
      });
      return { ...measured, ...(conflicts > 0 ? { note: `${conflicts} answers 409` } : {}) };
    },
  };
}

const setLimits = (server: MeasuredServer, names: readonly string[]): Promise<void> =>
  withConnection(server, async ({ send }) => {
    const resources = Object.fromEntries(Object.keys(claimedResources).map((name) => [name, 2_000_000_000]));
    const body = JSON.stringify({ resources, consumers: { all: 2_000_000_000 }, generation: null });
    for (const name of names) expectStatus((await send('PUT', `/limits/${name}`, body, false, version)).status, 200);
  });
