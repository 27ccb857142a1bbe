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
export type Asked = Omit<Wish, 'allocations'> & { readonly query: Query };

/** PUT /allocations/{consumer} with a query. */
export const claimByQuery = (microversion: number, asked: Asked, ifMatch?: string): Action => ({
  method: 'PUT',
  path: `/allocations/${asked.uuid}`,
  microversion,
  ifMatch,
  body: { candidates: queryText(asked.query), ...ownerFields(asked, microversion) },
  after: (state, reply, effectTime) =>
    placed(state, reply, effectTime, { microversion, asked: [asked], ifMatch, bodyOf: ({ body }) => body }),
});

/** POST /allocations with a query for each consumer. */
export const claimTogetherByQuery = (microversion: number, asked: readonly Asked[], ifMatch?: string): Action => ({
  method: 'POST',
  path: '/allocations',
  microversion,
  ifMatch,
  body: Object.fromEntries(
    asked.map((each) => [each.uuid, { candidates: queryText(each.query), ...ownerFields(each, microversion) }]),
  ),
  after: (state, reply, effectTime) =>
    placed(state, reply, effectTime, {
      microversion,
      asked,
      ifMatch,
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
  readonly asked: readonly Asked[];
  /** The part of an answer that is about a consumer. */
  readonly bodyOf: (reply: Reply, uuid: string) => unknown;
};

function placed(
  state: State,
  reply: Reply | undefined,
  effectTime: EffectTime,
  { asked, bodyOf, ...options }: Placing,
): readonly State[] {
  if (reply !== undefined && isLostRace(reply)) return [state];
  const claim = { ...options, wishes: asked.map((each) => ({ ...each, allocations: {} })) };
  const refusals = [...refusalsBeforeRoom(state, claim)];
  if (!asked.every(({ query }) => classesOf(query).every((name) => isClass(state, name)))) refusals.push(isUnknown);
  if (refusals.length > 0) return reply !== undefined && refusals.some((isRight) => isRight(reply)) ? [state] : [];
  const leastOf = (each: Asked): Wish => ({ ...each, allocations: { any: amountsOf(each.query) } });
  const isOver = exceedsLimit(state, withAllocations(state, asked.map(leastOf)));
  if (isOver) return reply !== undefined && isOverLimit(reply) ? [state] : [];
  if (reply?.status === 409 && errorOf(reply).code === 'placement.no_candidates') {
    return mayFitNowhere(state, asked) ? [state] : [];
  }
  if (reply !== undefined && reply.status !== 200) return [];
  return waysToPlace(state, asked)
    .filter((way) => way.every((got, index) => isAnswered(reply, bodyOf, asked[index]?.uuid ?? '', got)))
    .flatMap((way) => {
      const wishes = asked.map((each, index) => ({ ...each, allocations: way[index]?.allocations ?? {} }));
      const after = written(state, effectTime, { ...options, wishes });
      if (reply === undefined) return [after];
      return asked.reduce<readonly State[]>(
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
function inOrder(asked: readonly Asked[]): readonly Asked[] {
  const ordered: Asked[] = [];
  const place = (each: Asked): void => {
    if (ordered.includes(each)) return;
    for (const uuid of each.query.with ?? []) {
      const other = asked.find((one) => one.uuid === uuid && one !== each);
      if (other !== undefined) place(other);
    }
    ordered.push(each);
  };
  for (const each of asked) place(each);
  return ordered;
}

/** A state in which some consumers of a claim are placed. */
type Begun = { readonly state: State; readonly got: ReadonlyMap<string, Candidate> };

/** What may come of placing a consumer. What all consumers of the claim have in `before` is free for it. */
function placedNext(
  before: State,
  { state, got }: Begun,
  each: Asked,
  asked: readonly Asked[],
  mayStayAbove: boolean,
): readonly Begun[] {
  const treesOf = (uuid: string): ReadonlySet<string> => {
    const isOther = uuid !== each.uuid && asked.some((one) => one.uuid === uuid);
    const holder = (isOther ? state : before).consumers[uuid];
    return treesWith(before, Object.keys(holder?.allocations ?? {}));
  };
  const { with: together, apartFrom = [] } = each.query;
  const allowed = together && new Set(together.flatMap((uuid) => [...treesOf(uuid)]));
  const excluded = new Set(apartFrom.flatMap((uuid) => [...treesOf(uuid)]));
  for (const other of asked) {
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

const begin = (state: State, asked: readonly Asked[]): Begun => ({
  state: withoutConsumers(state, asked),
  got: new Map(),
});

/** All ways to place the consumers of a claim: for each consumer its candidate, in the order of the text. */
function waysToPlace(state: State, asked: readonly Asked[]): readonly (readonly Candidate[])[] {
  const ways = inOrder(asked).reduce<readonly Begun[]>(
    (begun, each) => begun.flatMap((way) => placedNext(state, way, each, asked, true)),
    [begin(state, asked)],
  );
  return ways.map(({ got }) => asked.flatMap(({ uuid }) => got.get(uuid) ?? []));
}

/** Whether some choice for the first consumers leaves no place for a later one. */
function mayFitNowhere(state: State, asked: readonly Asked[]): boolean {
  let begun: readonly Begun[] = [begin(state, asked)];
  for (const each of inOrder(asked)) {
    const next = begun.map((way) => placedNext(state, way, each, asked, isMended.overcommittedPlaces));
    if (next.some((ways) => ways.length === 0)) return true;
    begun = next.flat();
  }
  return false;
}
