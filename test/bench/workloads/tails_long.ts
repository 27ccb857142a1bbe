import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { closedLoop } from '../closed_loop.ts';
import { withConnections } from '../measure.ts';
import { explainedQuery, flatQuery } from './candidates.ts';
import { expectStatus } from './workload.ts';

/* The thread of W15 that asks for long answers: it posts a message when it is connected, and after a message how many answers it got in a second. */

/** The parameters of the thread. */
export type LongRequests = {
  readonly urls: readonly string[];
  readonly version: string;
  readonly durationMs: number;
};

const { urls, version, durationMs } = workerData as LongRequests; // passed by tails.ts
await withConnections({ urls: () => urls }, 6, async (connections) => {
  if (parentPort === null) throw new Error('This is the module of a thread.');
  parentPort.postMessage('connected');
  await once(parentPort, 'message');
  const { timesMs, elapsedMs } = await closedLoop(connections, { durationMs }, async (connection) => {
    const isForCandidates = connections.indexOf(connection) < 4;
    const path = isForCandidates ? flatQuery : `/allocation_candidates/explanation?${explainedQuery}`;
    expectStatus((await connection.send('GET', path, '', false, version)).status, 200);
  });
  parentPort.postMessage((timesMs.length * 1000) / elapsedMs);
});
