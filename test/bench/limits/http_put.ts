import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { providerUuid } from '../data_set.ts';
import { measure } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { claimOn } from '../workloads/claims.ts';
import { expectStatus } from '../workloads/workload.ts';
import type { Limit } from './limit.ts';

/** L2: a PUT with the body of a claim, parsed and answered 204, by node:http alone and through Hono. */
export const httpLimits: readonly Limit[] = ['node:http', 'hono'].flatMap((kind) =>
  [8, 32].map((concurrency) => ({
    name: `L2 PUT by ${kind}, c${concurrency}`,
    run: async (durationMs) => {
      const body = claimOn(providerUuid('host', 1));
      const server = await startBareServer(kind);
      try {
        return await measure(server, concurrency, { durationMs }, async (connection) => {
          expectStatus((await connection.send('PUT', '/allocations/x', body)).status, 204);
        });
      } finally {
        await server.close();
      }
    },
  })),
);

async function startBareServer(kind: string): Promise<MeasuredServer> {
  const child = fork(path.join(import.meta.dirname, 'http_put_main.ts'), [kind]);
  const [{ url }] = (await once(child, 'message')) as [{ readonly url: string }]; // what http_put_main.ts sends
  return {
    name: kind,
    urls: () => [url],
    pids: () => [child.pid ?? 0],
    databasePid: undefined,
    databaseUrl: () => undefined,
    fill: async () => {},
    close: async () => {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}
