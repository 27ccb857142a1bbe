import { type Action, errorOf, isLostRace } from './action.ts';
import { type Candidate, candidatesOf, classesOf, type Query, queryText, treesWith } from './candidates.ts';
import { ownerFields } from './claim_actions.ts';
import {
  type Claim,
  holderOf,
  isOverLimit,
  isUnknown,
  refusalsBeforeRoom,
  type Wish,
  withAllocations,
  withoutConsumers,
  written,
} from './claim_rules.ts';
import { withShown } from './consumer_actions.ts';
import type { Reply } from './history.ts';
import { isMended } from './mended.ts';
import { type Amounts, exceedsLimit, isClass, type State, showsExactly, sortedJson, withConsumer } from './state.ts';
import type { EffectTime } from './terms.ts';

/*
 * Claims by query, from 2.4 on.
 */

/** A consumer that should be placed, without what it gets. */
export type QueryWish = Omit<Wish, 'allocations'> & { readonly query: Query };

/** PUT /allocations/{consumer} with a query. */
export const claimByQuery = (microversion: number, queried: QueryWish): Action => ({
  method: 'PUT',
  path: `/allocations/${queried.uuid}`,
  microversion,
  body: { candidates: queryText(queried.query), ...ownerFields(queried, microversion) },
  after: (state, reply, effectTime) =>
    placed(state, reply, effectTime, { microversion, queried: [queried], bodyOf: ({ body }) => body }),
});

/** POST /allocations with a query for each consumer. */
export const claimTogetherByQuery = (microversion: number, queried: readonly QueryWish[]): Action => ({
  method: 'POST',
  path: '/allocations',
  microversion,
  body: Object.fromEntries(
    queried.map((each) => [each.uuid, { candidates: queryText(each.query), ...ownerFields(each, microversion) }]),
  ),
  after: (state, reply, effectTime) =>
    placed(state, reply, effectTime, {
      microversion,
      queried,
      expectsKnownOnly: true,
      bodyOf: ({ body }, uuid) => (body as Readonly<Record<string, unknown>>)[uuid],
    }),
});

/** What a query asks for by class. */
function amountsOf({ groups }: Query): Amounts {
  const sums: Record<string, number> = {};
  for (const { resources } of groups) {
    for (const [name, amount] of Object.entries(resources)) sums[name] = (sums[name] ?? 0) + amount;
  }
  return sums;
}

type Placing = Omit<Claim, 'wishes'> & {
  readonly queried: readonly QueryWish[];
  /** The part of an answer that is about a consumer. */
  readonly bodyOf: (reply: Reply, uuid: string) => unknown;
};

function placed(
  state: State,
  reply: Reply | undefined,
  effectTime: EffectTime,
  { queried, bodyOf, ...options }: Placing,
): readonly State[] {
  if (reply !== undefined && isLostRace(reply)) return [state];
  const claim = { ...options, wishes: queried.map((each) => ({ ...each, allocations: {} })) };
  const refusals = [...refusalsBeforeRoom(state, claim)];
  if (!queried.every(({ query }) => classesOf(query).every((name) => isClass(state, name)))) refusals.push(isUnknown);
  if (refusals.length > 0) return reply !== undefined && refusals.some((isRight) => isRight(reply)) ? [state] : [];
  const leastOf = (each: QueryWish): Wish => ({ ...each, allocations: { any: amountsOf(each.query) } });
  const isOver = exceedsLimit(state, withAllocations(state, queried.map(leastOf)));
  if (isOver) return reply !== undefined && isOverLimit(reply) ? [state] : [];
  if (reply?.status === 409 && errorOf(reply).code === 'placement.no_candidates') {
    return mayFitNowhere(state, queried) ? [state] : [];
  }
  if (reply !== undefined && reply.status !== 200) return [];
  return waysToPlace(state, queried)
    .filter((way) => way.every((got, index) => isAnswered(reply, bodyOf, queried[index]?.uuid ?? '', got)))
    .flatMap((way) => {
      const wishes = queried.map((each, index) => ({ ...each, allocations: way[index]?.allocations ?? {} }));
      const after = written(state, effectTime, { ...options, wishes });
      if (reply === undefined) return [after];
      return queried.reduce<readonly State[]>(
        (states, { uuid }) =>
          states.flatMap((each) => withShown(each, uuid, options.microversion, bodyOf(reply, uuid)) ?? []),
        [after],
      );
    });
}

/**
 * Whether an answer shows this candidate. The generations of its providers are left out: they are those after all claims
 * that were written by one statement.
 */
function isAnswered(
  reply: Reply | undefined,
  bodyOf: Placing['bodyOf'],
  uuid: string,
  { allocations, mappings }: Candidate,
): boolean {
  if (reply === undefined) return true;
  const shown = bodyOf(reply, uuid) as
    | {
        readonly allocations?: Readonly<Record<string, { readonly resources: object }>>;
        readonly mappings?: Readonly<Record<string, readonly string[]>>;
      }
    | undefined;
  const got = Object.entries(shown?.allocations ?? {}).map(([provider, { resources }]) => [provider, resources]);
  return sortedJson(Object.fromEntries(got)) === sortedJson(allocations) && showsExactly(shown?.mappings, mappings);
}

/** The order in which consumers are placed: that of the text, but each one after those that its `with` names. */
function inOrder(queried: readonly QueryWish[]): readonly QueryWish[] {
  const ordered: QueryWish[] = [];
  const place = (each: QueryWish): void => {
    if (ordered.includes(each)) return;
    for (const uuid of each.query.with ?? []) {
      const other = queried.find((one) => one.uuid === uuid && one !== each);
      if (other !== undefined) place(other);
    }
    ordered.push(each);
  };
  for (const each of queried) place(each);
  return ordered;
}

/** A state in which some consumers of a claim are placed. */
type Begun = { readonly state: State; readonly got: ReadonlyMap<string, Candidate> };

/** What may come of placing a consumer. What all consumers of the claim have in `before` is free for it. */
function placedNext(
  before: State,
  { state, got }: Begun,
  each: QueryWish,
  queried: readonly QueryWish[],
  mayStayAbove: boolean,
): readonly Begun[] {
  const treesOf = (uuid: string): ReadonlySet<string> => {
    const isOther = uuid !== each.uuid && queried.some((one) => one.uuid === uuid);
    const holder = (isOther ? state : before).consumers[uuid];
    return treesWith(before, Object.keys(holder?.allocations ?? {}));
  };
  const { with: together, apartFrom = [] } = each.query;
  const allowed = together && new Set(together.flatMap((uuid) => [...treesOf(uuid)]));
  const excluded = new Set(apartFrom.flatMap((uuid) => [...treesOf(uuid)]));
  for (const other of queried) {
    const at = got.get(other.uuid);
    if (at === undefined || !other.query.apartFrom?.includes(each.uuid)) continue;
    for (const root of treesWith(before, Object.keys(at.allocations))) excluded.add(root);
  }
  const isAllowed = (root: string) => (allowed === undefined || allowed.has(root)) && !excluded.has(root);
  const found = candidatesOf(state, each.query, { isAllowed, before: mayStayAbove ? before : undefined });
  return found.map((candidate) => {
    const holder = holderOf(each, candidate.allocations);
    return { state: withConsumer(state, each.uuid, holder), got: new Map([...got, [each.uuid, candidate]]) };
  });
}

const begin = (state: State, queried: readonly QueryWish[]): Begun => ({
  state: withoutConsumers(state, queried),
  got: new Map(),
});

/** All ways to place the consumers of a claim: for each consumer its candidate, in the order of the text. */
function waysToPlace(state: State, queried: readonly QueryWish[]): readonly (readonly Candidate[])[] {
  const ways = inOrder(queried).reduce<readonly Begun[]>(
    (begun, each) => begun.flatMap((way) => placedNext(state, way, each, queried, true)),
    [begin(state, queried)],
  );
  return ways.map(({ got }) => queried.flatMap(({ uuid }) => got.get(uuid) ?? []));
}

/** Whether some choice for the first consumers leaves no place for a later one. */
function mayFitNowhere(state: State, queried: readonly QueryWish[]): boolean {
  let begun: readonly Begun[] = [begin(state, queried)];
  for (const each of inOrder(queried)) {
    const next = begun.map((way) => placedNext(state, way, each, queried, isMended.overcommittedPlaces));
    if (next.some((ways) => ways.length === 0)) return true;
    begun = next.flat();
  }
  return false;
}
