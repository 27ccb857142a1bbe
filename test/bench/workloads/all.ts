import { candidateQuestions, flatCandidates, nestedCandidates } from './candidates.ts';
import { claims } from './claims.ts';
import { creating } from './creating.ts';
import { ending } from './ending.ts';
import { hotSpot } from './hot_spot.ts';
import { placing } from './placing.ts';
import { reads } from './reads.ts';
import { refreshes } from './refresh.ts';
import { schedulerLoop } from './scheduler_loop.ts';
import type { Workload } from './workload.ts';

/** Every workload, in the order of the table. */
export const allWorkloads: readonly Workload[] = [
  creating,
  ...flatCandidates,
  ...claims,
  ending,
  ...placing,
  schedulerLoop,
  hotSpot,
  ...reads,
  ...refreshes,
  ...nestedCandidates,
  ...candidateQuestions,
];
