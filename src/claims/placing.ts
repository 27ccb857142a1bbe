import type { AffinityGuard, NamedId } from '../../db/statements/claims/claim_write.ts';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { type Names, nameOf } from '../fleet/model/names.ts';
import { type Amount, openOverlay } from '../fleet/model/overlay.ts';
import { type Provider, treeOf } from '../fleet/model/provider.ts';
import { capacity, exactCapacity } from '../placement/inventory.ts';
import { normalUuid, withName } from '../placement/uuid.ts';
import { ApiError } from '../request/errors.ts';
import { type AllowedTrees, allTrees } from '../search/anchors.ts';
import { type Candidate, takenByProvider } from '../search/choices.ts';
import type { ResourceCondition } from '../search/conditions.ts';
import type { ProviderRank } from '../search/order.ts';
import { findPlace, firstUnmet, type Place } from '../search/place.ts';
import type { CandidateRequest, Work } from '../search/request.ts';
import { customNamesOf, type Resolution, requireKnownNames, resolveOrder } from '../search/resolve.ts';
import { affinityOf, maySee, namedBy, namedOutside, namesOthers } from './affinity.ts';
import {
  type Claim,
  ClaimRefused,
  type ConsumerClaim,
  type Mappings,
  type Placement,
  type PlacementQuery,
} from './claim.ts';

/** What the placing of consumers depends on besides the fleet. */
export type PlacingOptions = {
  /**
   * Whether the fleet is fresh and shows no claims that may still fail. Only then does a query that fits nowhere count
   * as such: the next query of the list is searched, and a refusal names the reason.
   */
  readonly isCertain: boolean;
  /**
   * The UUIDs of providers that other programs have locked. Their trees are used only if no other tree fits. With an
   * order they are not avoided: the claim waits for the first tree that fits.
   */
  readonly avoided: ReadonlySet<string>;
  /** Whether to find out only if the consumers fit somewhere: all queries are searched, and a refusal names no reason. */
  readonly isPrediction?: boolean;
  /** The trees to search, by their roots; absent for all. */
  readonly only?: ReadonlySet<Provider> | undefined;
  /** Called once with the number of steps that the searches took. */
  readonly onSteps?: (steps: number) => void;
};

/** For a fresh fleet that shows no other claims, as in a dry run. */
export const onCertainFleet: PlacingOptions = { isCertain: true, avoided: new Set() };

/** The largest number of steps (request.ts of the search) for one consumer: some 20 ms. */
const stepsOfOne = 400_000;
/** The same for all consumers of a claim: some 50 ms, in which no other request is served. */
const stepsOfAll = 1_000_000;

/**
 * Finds candidates for the consumers by query of a claim. For the search, the present allocations of all consumers of the claim count
 * as free, and its plain allocations count as used. Then the consumers are placed one after the other, in the order of `placing`.
 *
 * @throws ClaimRefused `no candidates`, `query too wide` or `query`
 */
export function placeConsumers(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  options: PlacingOptions,
): Placement {
  const overlay = openOverlay(fleet);
  const known = new Map<CandidateRequest, Resolution>();
  const workOfAll = { steps: stepsOfAll, spent: 0 };
  const consumers = [...claim.consumers];
  const mappings = new Map<string, Mappings>();
  const reliedOn = new Set<number>();
  const affinity = affinityOf(fleet, claim, states, options.isCertain);
  const keeping = keepingOf(fleet, claim, states);
  try {
    overlay.free(claim.consumers.flatMap(({ uuid }) => heldBy(fleet, states.get(uuid))));
    overlay.add(claim.consumers.flatMap((consumer) => takenByPlain(fleet, consumer)));
    for (const index of claim.placing ?? []) {
      const consumer = claim.consumers[index];
      if (consumer === undefined) continue; // each is the index of a consumer
      const allowedTrees = (request: CandidateRequest) => within(options.only, affinity.allowedTrees(index, request));
      const circumstances = { ...options, workOfAll, allowedTrees, known, rank: keeping.rankFor(consumer.uuid) };
      const { candidate, anchor, request } = placeOne(fleet, consumer, circumstances);
      keeping.notePlaced(consumer.uuid);
      const taken = takenByProvider(candidate);
      overlay.add(Array.from(taken, ([provider, amounts]) => amountsOf(provider, amounts)).flat());
      const placed = { ...consumer, allocations: namedAmounts(fleet, taken) };
      consumers[index] = placed;
      affinity.note(index, placed, request);
      mappings.set(consumer.uuid, mappingsOf(candidate));
      addTrees(reliedOn, anchor, candidate);
    }
  } finally {
    overlay.hide();
    options.onSteps?.(workOfAll.spent);
  }
  return {
    claim: { ...claim, consumers },
    mappings,
    reliedOn: [...reliedOn.union(affinity.reliedOn)],
    // Consumers that the claim may not see had no influence on the choice.
    affinity: namedOutside(claim)
      .filter((uuid) => maySee(claim.rights, states.get(uuid)))
      .map((uuid) => affinityGuard(uuid, states.get(uuid))),
    names: namesIn(fleet, claim),
  };
}

function namesIn(fleet: Fleet, { consumers }: Claim): Placement['names'] {
  const requests = new Set(consumers.flatMap(({ queries = [] }) => queries.map(({ request }) => request)));
  const named = [...requests].map(customNamesOf);
  return {
    classes: idsOf(fleet.classes, new Set(named.flatMap(({ classes }) => classes))),
    traits: idsOf(fleet.traits, new Set(named.flatMap(({ traits }) => traits))),
  };
}

const idsOf = ({ byName }: Names, names: Iterable<string>): readonly NamedId[] =>
  Array.from(names).flatMap((name) => byName.get(name) ?? []);

const affinityGuard = (uuid: string, state: ConsumerState | undefined): AffinityGuard => ({
  uuid,
  generation: state?.generation ?? null,
  recordId: state?.id ?? null,
  providerIds: [...new Set((state?.allocations ?? []).map(({ providerId }) => providerId))],
});

type PlacingCircumstances = PlacingOptions & {
  /** The steps that are left for the claim; `spent` are the steps that its searches took, including the lists that the searches made. */
  readonly workOfAll: Work & { spent: number };
  readonly known: Map<CandidateRequest, Resolution>;
  readonly allowedTrees: (request: CandidateRequest) => AllowedTrees;
  readonly rank: ProviderRank | undefined;
};

/** Places one consumer, by the first of its queries that fits somewhere. @throws ClaimRefused */
function placeOne(
  fleet: Fleet,
  consumer: ConsumerClaim,
  { workOfAll, isCertain, isPrediction = false, avoided, allowedTrees, known, rank }: PlacingCircumstances,
): Place & { readonly request: CandidateRequest } {
  const { uuid, queries = [] } = consumer;
  const shown = withName(uuid, consumer.name);
  // All queries are checked first, so that an unknown name in the last query refuses the claim also where the first query fits.
  asRefusals(shown, () => {
    for (const { request, conditions } of queries) {
      if (known.has(request)) continue;
      requireKnownNames(fleet, conditions);
      resolveOrder(fleet, request.order);
    }
  });
  for (const [index, { request }] of queries.entries()) {
    const granted = Math.min(stepsOfOne, workOfAll.steps);
    const work = { steps: granted, forLists: 0 };
    const options = { allowed: allowedTrees(request), work, known, rank };
    const found = asRefusals(shown, () => {
      const avoidsTrees = avoided.size > 0 && request.order.length === 0;
      const place = avoidsTrees
        ? findPlace(fleet, request, { ...options, allowed: without(fleet, options.allowed, avoided) })
        : 'nowhere';
      return place === 'nowhere' ? findPlace(fleet, request, options) : place;
    });
    const spent = granted - work.steps;
    workOfAll.steps -= spent;
    // The cost of lists that serve later searches counts for the batch, but not for the other consumers of the claim.
    workOfAll.spent += spent + work.forLists;
    if (found === 'too wide') throw tooWide(shown, index, queries.length);
    if (found !== 'nowhere') return { ...found, request };
    if (!isCertain && !isPrediction) break;
  }
  throw new ClaimRefused(
    'no candidates',
    isCertain ? `No allocation candidates for consumer ${shown}: ${unmetOf(fleet, queries, allowedTrees)}` : uuid,
  );
}

const within = (only: ReadonlySet<Provider> | undefined, allowed: AllowedTrees): AllowedTrees =>
  only === undefined ? allowed : { ...allowed, only: allowed.only?.intersection(only) ?? only };

const without = (fleet: Fleet, { only, not }: AllowedTrees, avoided: ReadonlySet<string>): AllowedTrees => ({
  only,
  not: not.union(new Set([...avoided].flatMap((uuid) => fleet.byUuid.get(uuid)?.root ?? []))),
});

const tooWide = (consumer: string, index: number, count: number): ClaimRefused =>
  new ClaimRefused(
    'query too wide',
    `The search for a place for consumer ${consumer} was stopped${count > 1 ? ` at query ${index + 1}` : ''}: ` +
      'it takes more work than one claim may. Ask for fewer request groups, or name a tree, an aggregate or a trait that few hosts have.',
  );

/** An unknown name is a refusal, and not an error at once: a fleet that is not fresh may not know the name yet. */
function asRefusals<Result>(consumer: string, search: () => Result): Result {
  try {
    return search();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ClaimRefused('query', `candidates of consumer ${consumer}: ${error.message}`);
  }
}

/** For each query, the condition that leaves no tree, as text. All queries together may take as much work as one consumer. */
function unmetOf(
  fleet: Fleet,
  queries: readonly PlacementQuery[],
  allowedTrees: PlacingCircumstances['allowedTrees'],
): string {
  const work = { steps: stepsOfOne, forLists: 0 };
  const reasons = queries.map(({ request, conditions }) => {
    const unmet = firstUnmet(fleet, conditions, { allowed: allTrees, work });
    if (unmet !== undefined) {
      const isFirst = unmet === conditions[0];
      const reason = `no tree meets ${unmet.parameter}=${unmet.value}${isFirst ? '' : ' and all conditions before it'}.`;
      return unmet.kind === 'resource' ? `${reason}${beyondAll(fleet, unmet)}` : reason;
    }
    const { only } = allowedTrees(request);
    const found = findPlace(fleet, request, { allowed: { ...allTrees, only }, work });
    const isWith = found === 'nowhere';
    const [name, uuids] = isWith ? ['with', request.with] : ['apart_from', request.apartFrom];
    if (uuids.length > 0) return `no tree meets ${name}=${uuids.join(',')} and all conditions before it.`;
    if (isWith) return 'no tree meets all its conditions.';
    if (found === 'too wide') {
      return 'no tree meets all its conditions; to find the one that leaves none takes too much work.';
    }
    return 'each tree that meets its conditions has a consumer that names this consumer in apart_from.';
  });
  if (reasons.length === 1) return reasons.join('');
  return reasons.map((reason, index) => `query ${index + 1}: ${reason}`).join(' ');
}

/** A sentence about an amount that no provider could give to one consumer even if nothing were used: waiting for releases does not help. */
function beyondAll({ classes, withClass }: Fleet, { name, amount }: ResourceCondition): string {
  const classId = classes.byName.get(name)?.id;
  if (classId === undefined) return '';
  let most = 0;
  let total = 0;
  for (const { inventories } of withClass.of(classId)) {
    const fields = inventories.find((each) => each.fields.classId === classId)?.fields;
    if (fields === undefined) continue;
    most = Math.max(most, Math.min(capacity(fields), fields.maxUnit));
    if (most >= amount) return '';
    total = Math.max(total, fields.total);
  }
  if (total === 0) return ` No provider has any ${name}.`;
  if (most <= 0) return ` All ${name} is reserved, as on drained hosts.`;
  return ` Also where nothing is used, no provider gives more than ${most} of ${name} to one consumer.`;
}

const amountsOf = (provider: Provider, amounts: Iterable<readonly [number, number]>): readonly Amount[] =>
  Array.from(amounts, ([classId, amount]) => ({ provider, classId, amount }));

const heldBy = ({ byId }: Fleet, state: ConsumerState | undefined): readonly Amount[] =>
  (state?.allocations ?? []).flatMap(({ providerId, classId, used }) => {
    const provider = byId.get(providerId);
    return provider === undefined ? [] : [{ provider, classId, amount: used }];
  });

/**
 * Lets each consumer of a claim keep the providers that it holds: these come first for it, and last for the consumers that are placed
 * before it. A provider that has more used than its capacity, such as a drained one, is like any other. To be called before the holdings
 * are freed.
 */
function keepingOf(
  fleet: Fleet,
  { consumers, placing = [] }: Claim,
  states: ReadonlyMap<string, ConsumerState>,
): { rankFor(uuid: string): ProviderRank | undefined; notePlaced(uuid: string): void } {
  const holders = new Map<Provider, Set<string>>();
  const placed = new Set(placing.flatMap((index) => consumers[index]?.uuid ?? []));
  const held = new Map(Array.from(placed, (uuid) => [uuid, heldBy(fleet, states.get(uuid)).filter(isWithinCapacity)]));
  for (const [uuid, amounts] of held) {
    for (const { provider } of amounts) holders.set(provider, (holders.get(provider) ?? new Set()).add(uuid));
  }
  return {
    rankFor: (uuid) => {
      if (holders.size === 0) return undefined;
      return (provider) => {
        const by = holders.get(provider);
        if (by === undefined || by.size === 0) return 1;
        return by.has(uuid) ? 0 : 2;
      };
    },
    notePlaced: (uuid) => {
      for (const { provider } of held.get(uuid) ?? []) holders.get(provider)?.delete(uuid);
    },
  };
}

const isWithinCapacity = ({ provider: { inventories } }: Amount): boolean =>
  inventories.every(({ fields, used }) => used <= exactCapacity(fields));

/** What a consumer of a claim takes by its allocations; unknown names are refused later. */
export const takenByPlain = ({ byUuid, classes }: Fleet, { allocations }: ConsumerClaim): readonly Amount[] =>
  Array.from(allocations).flatMap(([uuid, amounts]) =>
    Array.from(amounts).flatMap(([name, amount]) => {
      const provider = byUuid.get(uuid);
      const classId = classes.byName.get(name)?.id;
      return provider === undefined || classId === undefined ? [] : [{ provider, classId, amount }];
    }),
  );

const namedAmounts = (
  fleet: Fleet,
  taken: ReadonlyMap<Provider, ReadonlyMap<number, number>>,
): ConsumerClaim['allocations'] =>
  new Map(
    Array.from(taken, ([{ uuid }, amounts]) => [
      uuid,
      new Map(Array.from(amounts, ([classId, amount]) => [nameOf(fleet.classes, classId), amount])),
    ]),
  );

const mappingsOf = (candidate: Candidate): Mappings =>
  new Map(candidate.map(({ group, providers }) => [group.suffix, [...new Set(providers)].map(({ uuid }) => uuid)]));

/** Adds the ids of all providers of the tree of a candidate, and of the trees that share with it. */
function addTrees(ids: Set<number>, anchor: Provider, candidate: Candidate): void {
  for (const { id } of treeOf(anchor)) ids.add(id);
  for (const { providers } of candidate) {
    for (const { root } of providers) if (root !== anchor) for (const { id } of treeOf(root)) ids.add(id);
  }
}

/**
 * The order in which the consumers by query of a claim are placed: the order of the claim, but each consumer after the
 * consumers that its queries name in `with`.
 *
 * @returns `placing`: indexes in the list; or `circle`: the UUIDs of consumers, each of which would have to come after
 *   the next one, and the last of them after the first
 */
export function placingOrder(
  consumers: readonly ConsumerClaim[],
): { readonly placing: readonly number[] } | { readonly circle: readonly string[] } {
  const placed = [...consumers.keys()].filter((index) => consumers[index]?.queries !== undefined);
  if (!consumers.some(namesOthers)) return { placing: placed };
  const indexes = new Map(consumers.map(({ uuid }, index) => [normalUuid(uuid), index]));
  const after = consumers.map(({ queries = [] }, index) =>
    namedBy(queries, 'with').flatMap((uuid) => {
      const other = indexes.get(normalUuid(uuid));
      return other === undefined || other === index || consumers[other]?.queries === undefined ? [] : [other];
    }),
  );
  const placing = new Set<number>();
  for (const start of placed) {
    // Without recursion: each of a thousand consumers may name the one before.
    const way: { readonly index: number; readonly others: Iterator<number> }[] = [];
    const onWay = new Set<number>();
    const enter = (index: number): void => {
      onWay.add(index);
      way.push({ index, others: (after[index] ?? []).values() });
    };
    if (!placing.has(start)) enter(start);
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      const { done, value } = step.others.next();
      if (done) {
        placing.add(step.index);
        onWay.delete(step.index);
        way.pop();
      } else if (onWay.has(value)) {
        const circle = way.slice(way.findIndex(({ index }) => index === value));
        return { circle: circle.map(({ index }) => consumers[index]?.uuid ?? '') };
      } else if (!placing.has(value)) enter(value);
    }
  }
  return { placing: [...placing] };
}
