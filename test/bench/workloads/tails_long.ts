import { parentPort, workerData } from 'node:worker_threads';
import { closedLoop } from '../closed_loop.ts';
import { withConnections } from '../measure.ts';
import { explainedQuery, flatQuery } from './candidates.ts';
import { expectStatus } from './workload.ts';

/* The thread of W15 that asks for long answers: it posts how many it got. */

/** What the thread is told. */
export type LongRequests = { readonly url: string; readonly version: string; readonly durationMs: number };

const { url, version, durationMs } = workerData as LongRequests; // what tails.ts gives
await withConnections({ urls: () => [url] }, 6, async (connections) => {
  const { timesMs } = await closedLoop(connections, { durationMs }, async (connection) => {
    const isForCandidates = connections.indexOf(connection) < 4;
    const path = isForCandidates ? flatQuery : `/allocation_candidates/explanation?${explainedQuery}`;
    expectStatus((await connection.send('GET', path, '', false, version)).status, 200);
  });
  parentPort?.postMessage(timesMs.length);
});
