import { randomUUID } from 'node:crypto';
import { ApiError, type Placement } from '../client/index.ts';
import { numberOfVersion, versionNumber } from '../client/microversions.ts';
import { pause } from '../client/send.ts';

/* The jobs of one project: its limit lets a few of them run, and the others wait in a line. */

/** The version that introduced names; those that introduced limits, terms and waiting are older. */
const jobsSince = versionNumber('2.9');
const project = 'research';
const line = 'training';
const mostRunning = 4;
/** How many jobs are submitted at a time, those that wait among them. */
const submitters = 5;
/** How long a job runs, in seconds: from this to twice as long. */
const shortestSeconds = 15;
/** How long a job waits at most. */
const waitMs = 600_000;

/** Whether the service is new enough for the jobs. */
const hasJobs = async (placement: Placement): Promise<boolean> =>
  numberOfVersion((await placement.serverVersion()).version) >= jobsSince;

/** Limits how many jobs run at a time. */
export async function limitJobs(placement: Placement): Promise<void> {
  if (!(await hasJobs(placement))) return;
  await placement.limits.set(project, {
    resources: { VCPU: mostRunning * 8, MEMORY_MB: mostRunning * 65_536 },
    consumers: { JOB: mostRunning },
    generation: null,
  });
}

/** Submits jobs without end. Each one ends by its term. @throws the reason of the signal */
export async function submitJobs(placement: Placement, signal?: AbortSignal): Promise<void> {
  if (!(await hasJobs(placement))) return;
  let number = 0;
  const submit = async (): Promise<never> => {
    for (;;) {
      number += 1;
      const job = {
        candidates: { groups: { _CPU: { resources: { VCPU: 8, MEMORY_MB: 32_768 } } }, order: ['random'] as const },
        project_id: project,
        user_id: 'frances',
        consumer_generation: null,
        consumer_type: 'JOB',
        name: `training-${number}`,
        expires_in: Math.round(shortestSeconds * (1 + Math.random())),
      };
      await placement.allocations.place(randomUUID(), job, { waitMs, line, signal }).catch(ignoreRefusal);
      await pause(1_000, signal);
    }
  };
  await Promise.all(Array.from({ length: submitters }, submit));
}

/** A job that is not placed in time, or whose wait another program ends, is not submitted again. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ApiError) || error.status === 401 || error.status === 403) throw error;
}
