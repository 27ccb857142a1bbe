import type { Random } from '../races/random.ts';
import type { Action } from './action.ts';
import { againWork } from './again_work.ts';
import type { Arena, Scene } from './arena.ts';
import { readCandidates } from './candidate_reads.ts';
import { type Chooser, chooserFor, newest, type Weighted } from './chooser.ts';
import { classWork } from './class_work.ts';
import { hostWork, oneClass } from './host_work.ts';
import { readLimits } from './limit_actions.ts';
import { limitWork } from './limit_work.ts';
import type { Notes } from './notes.ts';
import { providerReads, readAllocations, readHolders, readProjectUsages, readSummaries } from './read_actions.ts';
import { treeWork } from './tree_work.ts';

const work: Readonly<Record<Scene, (choose: Chooser) => readonly Weighted[]>> = {
  hosts: hostWork,
  trees: treeWork,
  classes: classWork,
  again: againWork,
  limits: limitWork,
};

/** Chooses requests to an arena, by what its clients have seen: some that follow each other at once, or a single one. */
export function randomRequests(arena: Arena, notes: Notes, random: Random): () => readonly (() => Action)[] {
  const weighted = work[arena.scene](chooserFor(arena, notes, random));
  const whole = weighted.reduce((sum, [weight]) => sum + weight, 0);
  return () => {
    let left = random.below(whole);
    for (const [weight, ...requests] of weighted) {
      left -= weight;
      if (left < 0) return requests;
    }
    throw new Error('There is nothing to do.');
  };
}

/** Reads of all that an arena has. */
export const readAll = (arena: Arena): readonly Action[] => [
  ...arena.providers.flatMap((uuid) =>
    arena.scene === 'hosts' ? [...providerReads.map((of) => of(newest, uuid)), readHolders(newest, uuid)] : [],
  ),
  ...arena.consumers.map((uuid) => readAllocations(newest, uuid)),
  ...arena.projects.map((project) => readProjectUsages(1037, project)),
  ...(arena.scene === 'limits' ? arena.projects.map(readLimits) : []),
  readCandidates(newest, oneClass({ arena }, 1)),
  readSummaries(newest, arena.providers),
];
