import { randomUUID } from 'node:crypto';
import { measure } from '../measure.ts';
import { flatQuery } from './candidates.ts';
import { claimBody, deleteAllocations, release } from './claims.ts';
import { expectStatus, type Workload } from './workload.ts';

const mostAttempts = 20;

/**
 * W4: what a scheduler does for an instance: it asks for ten candidates and claims one of them. Half of the instances
 * are deleted.
 */
export const schedulerLoop: Workload = {
  name: 'W4 scheduler loop (candidates, claim, half deleted), c8',
  dataSet: 'flat',
  grows: true,
  run: async (server, { durationMs }) => {
    const living: string[] = [];
    let conflicts = 0;
    const measured = await measure(server, 8, { durationMs }, async (connection) => {
      const consumer = randomUUID();
      for (let attempt = 1; ; attempt += 1) {
        const candidates = await connection.send('GET', `${flatQuery}&limit=10`, '', true);
        expectStatus(candidates.status, 200);
        const body = claimBody(anyCandidate(candidates.body).allocations);
        const { status } = await connection.send('PUT', `/allocations/${consumer}`, body);
        if (status === 204) break;
        expectStatus(status, 409);
        conflicts += 1;
        if (attempt === mostAttempts) throw new Error(`A claim lost ${mostAttempts} races, one after the other.`);
      }
      if (Math.random() < 0.5) await deleteAllocations(connection, consumer);
      else living.push(consumer);
    });
    await release(server, living);
    return { ...measured, note: `${conflicts} answers 409` };
  },
};

type Candidate = { readonly allocations: unknown };

function anyCandidate(body: string): Candidate {
  // The form of the answer from microversion 1.12 on.
  const { allocation_requests: candidates } = JSON.parse(body) as {
    readonly allocation_requests: readonly Candidate[];
  };
  const candidate = candidates[Math.floor(Math.random() * candidates.length)];
  if (candidate === undefined) throw new Error('There are no candidates.');
  return candidate;
}
