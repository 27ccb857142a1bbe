import { type Amounts, capacityOf, providerOf, type State, usedOf } from './state.ts';
import { isWithin, rootOf, rootsOf, treeOf } from './trees.ts';

/*
 * Which candidates a query has in a state, by trying all combinations. No provider of a history shares.
 */

/** What one provider must offer; for the group without suffix, the providers of one tree together. */
export type Group = {
  /** Empty for the group without suffix. */
  readonly suffix: string;
  /** None only for a group that `sameSubtree` names. */
  readonly resources: Amounts;
  readonly required?: readonly string[];
  readonly forbidden?: readonly string[];
  readonly memberOf?: string;
  readonly inTree?: string;
};

/** A query for allocation candidates. */
export type Query = {
  readonly groups: readonly Group[];
  readonly isolate?: boolean;
  /** Suffixes of groups. */
  readonly sameSubtree?: readonly string[];
  readonly rootRequired?: string;
  readonly order?: string;
  /** Consumers in one of whose trees the candidate must be. */
  readonly with?: readonly string[];
  /** Consumers in none of whose trees it may be. */
  readonly apartFrom?: readonly string[];
};

/** The query as GET /allocation_candidates takes it. */
export function queryText(query: Query): string {
  const { groups, isolate, sameSubtree, rootRequired, order } = query;
  const parts = groups.flatMap(({ suffix, resources, required = [], forbidden = [], memberOf, inTree }) => {
    const amounts = Object.entries(resources).map(([name, amount]) => `${name}:${amount}`);
    const traits = [...required, ...forbidden.map((name) => `!${name}`)];
    return [
      ...(amounts.length === 0 ? [] : [`resources${suffix}=${amounts}`]),
      ...(traits.length === 0 ? [] : [`required${suffix}=${traits}`]),
      ...(memberOf === undefined ? [] : [`member_of${suffix}=${memberOf}`]),
      ...(inTree === undefined ? [] : [`in_tree${suffix}=${inTree}`]),
    ];
  });
  const wide: readonly (readonly [name: string, value: string | undefined])[] = [
    ['group_policy', groups.length > 1 ? (isolate ? 'isolate' : 'none') : undefined],
    ['same_subtree', sameSubtree?.join(',')],
    ['root_required', rootRequired],
    ['order', order],
    ['with', query.with?.join(',')],
    ['apart_from', query.apartFrom?.join(',')],
  ];
  return [...parts, ...wide.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))].join('&');
}

/** The classes that a query asks for. */
export const classesOf = ({ groups }: Query): readonly string[] =>
  groups.flatMap(({ resources }) => Object.keys(resources));

/** A way to place a query: amounts by provider, and the providers of each group. */
export type Candidate = {
  readonly allocations: Readonly<Record<string, Amounts>>;
  readonly mappings: Readonly<Record<string, readonly string[]>>;
};

/** What a search depends on besides the state. */
export type SearchOptions = {
  /** Whether a candidate may be in the tree with this root; all are allowed unless it is said. */
  readonly isAllowed?: (root: string) => boolean;
  /**
   * The state with what the claim itself has now: an inventory that is used beyond its capacity may stay so, as long as it is
   * not used more than there.
   */
  readonly before?: State | undefined;
};

/** All candidates of a query. */
export function candidatesOf(
  state: State,
  query: Query,
  { isAllowed = () => true, before }: SearchOptions = {},
): readonly Candidate[] {
  const { groups, rootRequired } = query;
  if (groups.some(({ inTree }) => inTree !== undefined && state.providers[inTree] === undefined)) return [];
  return rootsOf(state).flatMap((root) => {
    if (!isAllowed(root)) return [];
    if (rootRequired !== undefined && !providerOf(state, root).traits.includes(rootRequired)) return [];
    return combined(groups.map((group) => choicesOf(state, root, group, before)))
      .filter((choices) => isPossible(state, query, choices, before))
      .map((choices) => candidateOf(choices));
  });
}

/** A group, and the provider of each of its classes; one for a group without resources. */
type Choice = {
  readonly group: Group;
  readonly taken: readonly { readonly provider: string; readonly name: string; readonly amount: number }[];
  readonly providers: readonly string[];
};

function choicesOf(state: State, root: string, group: Group, before: State | undefined): readonly Choice[] {
  const { suffix, resources, required = [], forbidden = [], memberOf, inTree } = group;
  if (inTree !== undefined && rootOf(state, inTree) !== root) return [];
  const isMember = (uuid: string) => memberOf === undefined || providerOf(state, uuid).aggregates.includes(memberOf);
  const has = (uuid: string, trait: string) => providerOf(state, uuid).traits.includes(trait);
  const tree = treeOf(state, root).filter((uuid) => !forbidden.some((trait) => has(uuid, trait)));
  const amounts = Object.entries(resources);
  const choiceOf = (providers: readonly string[]): Choice => ({
    group,
    taken: amounts.map(([name, amount], index) => ({ provider: providers[index] ?? '', name, amount })),
    providers: [...new Set(providers)].sort(),
  });
  if (suffix === '') {
    // The aggregates of a root are those of its tree, and the traits are those of all its providers together.
    const members = isMember(root) ? tree : tree.filter(isMember);
    const byClass = amounts.map(([name, amount]) => members.filter((uuid) => fits(state, uuid, name, amount, before)));
    return combined(byClass)
      .filter((providers) => required.every((trait) => providers.some((uuid) => has(uuid, trait))))
      .map(choiceOf);
  }
  return tree
    .filter(
      (uuid) =>
        isMember(uuid) &&
        required.every((trait) => has(uuid, trait)) &&
        amounts.every(([name, amount]) => fits(state, uuid, name, amount, before)),
    )
    .map((uuid) =>
      amounts.length === 0 ? { group, taken: [], providers: [uuid] } : choiceOf(amounts.map(() => uuid)),
    );
}

/** Whether an amount is within the units of an inventory, and there is room for it. */
function fits(state: State, provider: string, name: string, amount: number, before: State | undefined): boolean {
  const inventory = state.providers[provider]?.inventories[name];
  if (inventory === undefined) return false;
  const { min_unit, max_unit, step_size } = inventory;
  if (amount < min_unit || amount > max_unit || amount % step_size !== 0) return false;
  return amount <= freeOf(state, provider, name, before);
}

/** How much more of an inventory may be used. */
function freeOf(state: State, provider: string, name: string, before: State | undefined): number {
  const inventory = state.providers[provider]?.inventories[name];
  const capacity = inventory === undefined ? 0 : capacityOf(inventory);
  return Math.max(capacity, before === undefined ? 0 : usedOf(before, provider, name)) - usedOf(state, provider, name);
}

/** All ways to take one of each list. */
const combined = <Item>(lists: readonly (readonly Item[])[]): readonly (readonly Item[])[] =>
  lists.reduce<readonly (readonly Item[])[]>(
    (begun, list) => begun.flatMap((items) => list.map((item) => [...items, item])),
    [[]],
  );

function isPossible(
  state: State,
  { isolate, sameSubtree = [] }: Query,
  choices: readonly Choice[],
  before: State | undefined,
): boolean {
  const granular = choices.filter(({ group }) => group.suffix !== '').flatMap(({ providers }) => providers);
  if (isolate && new Set(granular).size < granular.length) return false;
  const together = choices.filter(({ group }) => sameSubtree.includes(group.suffix)).flatMap((each) => each.providers);
  const isOneSubtree = together.some((top) => together.every((uuid) => isWithin(state, uuid, top)));
  if (together.length > 0 && !isOneSubtree) return false;
  return Object.entries(candidateOf(choices).allocations).every(([provider, amounts]) =>
    Object.entries(amounts).every(([name, amount]) => {
      const inventory = providerOf(state, provider).inventories[name];
      if (inventory === undefined) return false;
      return amount <= Math.min(inventory.max_unit, freeOf(state, provider, name, before));
    }),
  );
}

function candidateOf(choices: readonly Choice[]): Candidate {
  const allocations: Record<string, Record<string, number>> = {};
  for (const { provider, name, amount } of choices.flatMap(({ taken }) => taken)) {
    const amounts = allocations[provider] ?? {};
    amounts[name] = (amounts[name] ?? 0) + amount;
    allocations[provider] = amounts;
  }
  return {
    allocations,
    mappings: Object.fromEntries(choices.map(({ group, providers }) => [group.suffix, providers])),
  };
}

/** The roots of the trees in which some providers are. */
export const treesWith = (state: State, providers: Iterable<string>): ReadonlySet<string> =>
  new Set(Array.from(providers, (uuid) => rootOf(state, uuid)));
