import type { CandidateRequest } from '../../../src/search/request.ts';
import { candidatesAt, capacityOf } from '../oracle.ts';
import type { ClassName, Topology } from '../topology.ts';

/** How many states are tried. A case with more is left out. */
const mostStates = 2000;
/** A case with more candidates than this is left out as well. */
const mostCandidates = 60;

/** What each of the consumers takes that can be claimed at once. */
type Placed = readonly Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>[];

/** The largest number of consumers that can be claimed at once; undefined where there are too many ways to place them. */
export const naiveCount = (...args: Parameters<typeof mostPlaced>): number | undefined => mostPlaced(...args)?.length;

/**
 * One of the ways to place as many consumers as possible at the same time: all ways to take candidates, each any number of times,
 * are tried.
 *
 * @param roots the roots of the trees in which consumers are placed
 * @returns undefined if there are too many ways
 */
export function mostPlaced(
  topology: Topology,
  request: CandidateRequest,
  roots = topology.filter(({ parent }) => parent === undefined),
): Placed | undefined {
  // What the candidates take. Candidates that differ only by their mappings count once.
  const takes = new Map(
    roots
      .flatMap((root) => [...candidatesAt(topology, request, root)])
      .map((key) => {
        const [amounts]: [[string, number][]] = JSON.parse(key);
        return [JSON.stringify(amounts), amounts];
      }),
  );
  if (takes.size > mostCandidates) return undefined;
  const room = new Map<string, number>();
  for (const amounts of takes.values()) {
    for (const [key] of amounts) {
      const [uuid, name] = key.split(' ');
      const stock = topology.find((node) => node.uuid === uuid)?.stock[name as ClassName]; // as the oracle wrote it
      if (stock !== undefined) room.set(key, Math.floor(capacityOf(stock)) - stock.used);
    }
  }
  const keys = [...room.keys()];
  const candidates = [...takes.values()].map((amounts) => {
    const ofKey = new Map(amounts);
    return keys.map((key) => ofKey.get(key) ?? 0);
  });
  const known = new Map<string, readonly number[]>();
  const most = (first: number, left: readonly number[]): readonly number[] => {
    const state = `${first} ${left.join(' ')}`;
    const before = known.get(state);
    if (before !== undefined || known.size > mostStates) return before ?? [];
    let best: readonly number[] = [];
    for (let index = first; index < candidates.length; index++) {
      const rest = left.map((each, at) => each - (candidates[index]?.[at] ?? 0));
      if (rest.some((each) => each < 0)) continue;
      const found = most(index, rest);
      if (found.length + 1 > best.length) best = [index, ...found];
    }
    known.set(state, best);
    return best;
  };
  const best = most(0, [...room.values()]);
  return known.size > mostStates ? undefined : best.map((index) => allocationsOf([...takes.values()][index] ?? []));
}

function allocationsOf(amounts: readonly (readonly [key: string, amount: number])[]): Placed[number] {
  const byProvider = Map.groupBy(amounts, ([key]) => key.split(' ')[0] ?? '');
  return Object.fromEntries(
    [...byProvider].map(([uuid, ofProvider]) => [
      uuid,
      { resources: Object.fromEntries(ofProvider.map(([key, amount]) => [key.split(' ')[1], amount])) },
    ]),
  );
}
