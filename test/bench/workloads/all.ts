import { candidateQuestions, flatCandidates, nestedCandidates } from './candidates.ts';
import { claiming, claims } from './claims.ts';
import { creating } from './creating.ts';
import { ending } from './ending.ts';
import { hotSpot } from './hot_spot.ts';
import { limitedClaims } from './limits.ts';
import { placing } from './placing.ts';
import { readingProviders, reads } from './reads.ts';
import { refreshes, refreshing } from './refresh.ts';
import { schedulerLoop } from './scheduler_loop.ts';
import { tails } from './tails.ts';
import { waiting } from './waiting.ts';
import type { Workload } from './workload.ts';

/** Every workload, in the order of the table. */
export const allWorkloads: readonly Workload[] = [
  creating,
  ...flatCandidates,
  ...claims,
  ...ending,
  ...placing,
  schedulerLoop,
  hotSpot(16),
  limitedClaims(32, 100),
  limitedClaims(16, 1),
  ...waiting,
  ...reads,
  ...refreshes,
  ...nestedCandidates,
  ...candidateQuestions,
  ...tails,
];

/** The workloads that several processes on one PostgreSQL are measured by, each process with the same load. */
export const sharedWorkloads: readonly Workload[] = [
  claiming({ eachProcess: 16 }),
  hotSpot({ eachProcess: 16 }),
  limitedClaims({ eachProcess: 16 }, 1),
  readingProviders({ eachProcess: 16 }),
  refreshing(1, { eachProcess: 16 }),
];
