import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { nameOf } from '../../src/fleet/model/names.ts';
import { type Candidate, providerOf } from '../../src/search/choices.ts';
import { keyOf } from './oracle.ts';

/** A candidate of the search, written as the oracle writes its own. */
export function candidateKey(fleet: Fleet, candidate: Candidate): string {
  const amounts = new Map<string, number>();
  for (const choice of candidate) {
    for (const [index, { classId, amount }] of choice.group.resources.entries()) {
      const key = `${providerOf(choice, index)?.uuid} ${nameOf(fleet.classes, classId)}`;
      amounts.set(key, (amounts.get(key) ?? 0) + amount);
    }
  }
  const mappings = candidate.map(({ group, providers }) => [group.suffix, providers.map(({ uuid }) => uuid)] as const);
  return keyOf(amounts, new Map(mappings));
}
