import type { Action } from './action.ts';
import { candidatesOf, classesOf, type Query, queryText, treesWith } from './candidates.ts';
import { resourcesOf } from './claim_actions.ts';
import { placeOf, read } from './read_actions.ts';
import { capacityOf, isClass, providerOf, type State, shows, showsExactly, usedOf } from './state.ts';
import { treeOf } from './trees.ts';

/**
 * GET /allocation_candidates from 1.34 on, with mappings: all candidates of one point in time. Classes of which some do not
 * exist are a 400, unless nothing is searched for.
 */
export const readCandidates = (microversion: number, query: Query): Action =>
  read(microversion, `/allocation_candidates?${queryText(query)}`, (state, { status, body }) => {
    const isKnown = classesOf(query).every((name) => isClass(state, name));
    if (status === 400) return !isKnown;
    if (status !== 200) return false;
    const treesOf = (uuids: readonly string[] = []): readonly string[] =>
      uuids.flatMap((uuid) => [...treesWith(state, Object.keys(state.consumers[uuid]?.allocations ?? {}))]);
    const { with: together, apartFrom } = query;
    const isAllowed = (root: string) =>
      (together === undefined || treesOf(together).includes(root)) && !treesOf(apartFrom).includes(root);
    const found = isKnown ? candidatesOf(state, query, { isAllowed }) : [];
    const roots = new Set(found.flatMap(({ allocations }) => [...treesWith(state, Object.keys(allocations))]));
    const summaries = Array.from(roots, (root) => treeOf(state, root))
      .flat()
      .map((uuid) => [uuid, summaryOf(state, uuid)]);
    const answer = body as {
      readonly allocation_requests?: readonly Shown[];
      readonly provider_summaries?: unknown;
    };
    const expected = found.map(({ allocations, mappings }) => ({ allocations: resourcesOf(allocations), mappings }));
    return (
      shows(answer.allocation_requests?.map(inOrder), expected) &&
      showsExactly(answer.provider_summaries, Object.fromEntries(summaries))
    );
  });

/** A candidate as the answer shows it. */
type Shown = { readonly mappings: Readonly<Record<string, readonly string[]>> };

/** The same with the providers of each group in the order of their UUIDs. */
const inOrder = (shown: Shown): Shown => ({
  ...shown,
  mappings: Object.fromEntries(Object.entries(shown.mappings).map(([suffix, uuids]) => [suffix, uuids.toSorted()])),
});

/** A provider beside candidates. */
function summaryOf(state: State, uuid: string) {
  const { inventories, traits, parent } = providerOf(state, uuid);
  const resources = Object.entries(inventories).map(([name, inventory]) => [
    name,
    { capacity: capacityOf(inventory), used: usedOf(state, uuid, name) },
  ]);
  return { resources: Object.fromEntries(resources), traits, ...placeOf(state, uuid, parent) };
}
