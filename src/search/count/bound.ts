import { inventoryOf, type Provider, treeSize } from '../../fleet/model/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import type { Sharing } from '../anchors.ts';
import { granularProviders, optionsByClass } from '../choices.ts';
import { greatestCommonDivisor } from '../order.ts';
import { overspends, type Work } from '../request.ts';
import type { ResolvedGroup, ResolvedRequest } from '../resolve.ts';

/** The free amount of a class; 0 if the provider is overcommitted. */
function roomAt(provider: Provider, classId: number): number {
  const inventory = inventoryOf(provider, classId);
  return inventory === undefined ? 0 : Math.max(0, capacity(inventory.fields) - inventory.used);
}

/** How many consumers can each take this amount from a provider at the same time. */
export const timesAt = (provider: Provider, classId: number, amount: number): number =>
  Math.floor(roomAt(provider, classId) / amount);

/** How many consumers can each take all amounts of a group from a provider that satisfies the group. */
export function timesOfGroup(provider: Provider, { resources }: ResolvedGroup): number {
  let times = Number.POSITIVE_INFINITY;
  for (const { classId, amount } of resources) times = Math.min(times, timesAt(provider, classId, amount));
  return times;
}

/**
 * An upper bound for how many consumers can be placed at some anchors. It follows from the amounts that each group can get from
 * its providers, from the total of each class, and with isolation from the number of providers.
 *
 * @param work the budget of the count: if it is not enough, the bound may be higher than necessary
 * @param turns the turns after which the work pauses
 */
export function* mostAt(
  anchors: Iterable<Provider>,
  { groups, isolate }: ResolvedRequest,
  sharing: Sharing,
  work: Work,
  turns: Turns | undefined,
): Pieces<number> {
  /**
   * For each group the providers that it may take from: a set for each of its classes; for a granular group one set.
   */
  const sources = groups.map(({ granular, resources }) =>
    Array.from({ length: granular ? 1 : resources.length }, () => new Set<Provider>()),
  );
  for (const anchor of anchors) {
    const usable = sharing.usableBy(anchor);
    if (turns?.isOver(groups.length * treeSize(anchor))) yield undefined;
    for (const [index, group] of groups.entries()) {
      for (const [at, providers] of optionsOf(group, anchor, usable).entries()) {
        for (const provider of providers) sources[index]?.[at]?.add(provider);
      }
    }
  }
  let bound = Number.POSITIVE_INFINITY;
  for (const [index, group] of groups.entries()) {
    bound = Math.min(bound, mostOfGroup(group, sources[index] ?? []));
    if (turns?.isOver(sources[index]?.[0]?.size)) yield undefined;
  }
  const granular = groups.flatMap((group, index) =>
    group.granular ? [{ group, providers: sources[index]?.[0] ?? new Set<Provider>() }] : [],
  );
  bound = Math.min(bound, yield* mostByClass(groups, sources, turns));
  return isolate && granular.length > 1 ? yield* mostApart(granular, bound, work, turns) : bound;
}

/**
 * The providers that a group may take from in a tree: for a granular group one list, else a list for each of its
 * classes.
 */
const optionsOf = (
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
): readonly (readonly Provider[])[] =>
  group.granular ? [granularProviders(group, anchor, usable, 'steady')] : optionsByClass(anchor, usable, group);

type Providers = ReadonlySet<Provider>;

/** How often a group can be placed if the other groups take nothing. */
function mostOfGroup(group: ResolvedGroup, sources: readonly Providers[]): number {
  const [first = new Set<Provider>()] = sources;
  // A group without resources takes nothing, so it can be placed any number of times.
  if (group.resources.length === 0) return first.size > 0 ? Number.POSITIVE_INFINITY : 0;
  if (group.granular) return sum(first, (provider) => timesOfGroup(provider, group));
  return Math.min(
    ...group.resources.map(({ classId, amount }, index) =>
      sum(sources[index] ?? first, (provider) => timesAt(provider, classId, amount)),
    ),
  );
}

/**
 * For each class, how many consumers the providers of all groups together are enough for. At each provider only a multiple of
 * the greatest common divisor of the amounts can be used.
 */
function* mostByClass(
  groups: readonly ResolvedGroup[],
  sources: readonly (readonly Providers[])[],
  turns: Turns | undefined,
): Pieces<number> {
  const asked = Map.groupBy(
    groups.flatMap(({ granular, resources }, index) =>
      resources.map(({ classId, amount }, at) => ({ classId, amount, providers: sources[index]?.[granular ? 0 : at] })),
    ),
    ({ classId }) => classId,
  );
  let most = Number.POSITIVE_INFINITY;
  for (const [classId, those] of asked) {
    const unit = those.map(({ amount }) => amount).reduce(greatestCommonDivisor);
    const providers = yield* joined(
      those.flatMap((each) => each.providers ?? []),
      turns,
    );
    const all = those.reduce((total, { amount }) => total + amount, 0);
    const room = sum(providers, (provider) => Math.floor(roomAt(provider, classId) / unit) * unit);
    most = Math.min(most, Math.floor(room / all));
  }
  return most;
}

/** All providers of some sets. */
function* joined(sets: readonly Providers[], turns: Turns | undefined): Pieces<Providers> {
  const [only, another] = sets;
  if (only !== undefined && another === undefined) return only;
  const all = new Set<Provider>();
  for (const set of sets) {
    for (const provider of set) all.add(provider);
    if (turns?.isOver(set.size)) yield undefined;
  }
  return all;
}

type Granular = { readonly group: ResolvedGroup; readonly providers: Providers };

/** With more granular groups than this number, only some sets of groups are examined. */
const mostGroupsInSets = 6;

/**
 * With isolation each consumer takes from a provider for one group only. So for any set of groups a consumer needs at least as
 * many different providers as the set has groups. One provider can serve several consumers in this way.
 */
function* mostApart(
  granular: readonly Granular[],
  bound: number,
  work: Work,
  turns: Turns | undefined,
): Pieces<number> {
  if (!Number.isFinite(bound)) return bound;
  const needs: { readonly groups: number; readonly times: number[] }[] = [];
  for (const some of setsOf(granular)) {
    const times: number[] = [];
    const providers = yield* joined(
      some.map((each) => each.providers),
      turns,
    );
    for (const provider of providers) {
      if (overspends(work, some.length * stepsOfTimes)) return bound;
      if (turns?.isOver(some.length * stepsOfTimes)) yield undefined;
      times.push(timesOfAny(provider, some));
    }
    needs.push({ groups: some.length, times });
  }
  const isEnough = (count: number): boolean =>
    needs.every(({ groups, times }) => sum(times, (each) => Math.min(each, count)) >= groups * count);
  // A binary search: if a number of consumers is too many, every larger number is as well.
  let [enough, tooMany] = [0, bound + 1];
  while (tooMany - enough > 1) {
    if (turns?.isOver(sum(needs, ({ times }) => times.length))) yield undefined;
    const middle = Math.floor((enough + tooMany) / 2);
    // Beyond 2^53 there may be no number between the two.
    if (middle <= enough || middle >= tooMany) break;
    if (isEnough(middle)) enough = middle;
    else tooMany = middle;
  }
  return enough;
}

/** What `timesOfAny` costs for each group, in steps. */
const stepsOfTimes = 4;

/** All sets of two or more groups. With very many groups: each pair, and the set of all groups. */
function setsOf(granular: readonly Granular[]): readonly (readonly Granular[])[] {
  if (granular.length > mostGroupsInSets) {
    const pairs = granular.flatMap((one, index) => granular.slice(index + 1).map((other) => [one, other]));
    return [...pairs, granular];
  }
  return Array.from({ length: 2 ** granular.length }, (_, bits) =>
    granular.filter((_group, index) => bits & (2 ** index)),
  ).filter((some) => some.length > 1);
}

/** An upper bound for the number of consumers that can each take the amounts of one of the groups from a provider. */
function timesOfAny(provider: Provider, granular: readonly Granular[]): number {
  const groups = granular.flatMap(({ group, providers }) => (providers.has(provider) ? [group] : []));
  const [first, ...others] = groups;
  // If all groups need a class, each consumer takes at least the smallest amount of the groups.
  const common = (first?.resources ?? []).flatMap(({ classId, amount }) => {
    const amounts = others.map(({ resources }) => resources.find((each) => each.classId === classId)?.amount);
    return amounts.every((each) => each !== undefined)
      ? [timesAt(provider, classId, Math.min(amount, ...amounts))]
      : [];
  });
  return Math.min(
    sum(groups, (group) => timesOfGroup(provider, group)),
    ...common,
  );
}

const sum = <Item>(items: Iterable<Item>, numberOf: (item: Item) => number): number => {
  let total = 0;
  for (const item of items) total += numberOf(item);
  return total;
};

/**
 * How many members of a list there are of each kind. The kind of a member is the set of needs that it covers, as bits.
 */
export type Kinds = ReadonlyMap<number, number>;

/** A number that can be reached, and whether it is certain that no larger one can. */
export type Bounded = { readonly count: number; readonly exact: boolean };

/**
 * How many steps the search may take with three or more lists, for which there is no rule, and how many members of lists all these
 * steps may examine: some 10 ms.
 */
const [mostSteps, mostExamined] = [50_000, 1_000_000];
/** With so many kinds in two lists, some 10 ms, pairs are not counted by a flow. */
const mostKindsOfPairs = 10_000;

/**
 * The largest number of teams that can exist at the same time. A team has one member of each list, and its members
 * together cover all needs. Here a team is a consumer of the group without suffix. It has a list for each class, whose
 * members are the amounts that providers can give; the needs are the required traits, which the providers of the team
 * must have together.
 *
 * @param needs all needs, as bits
 */
export function mostTeams(lists: readonly Kinds[], needs: number): Bounded {
  const bound = upperBound(lists, needs);
  const [first = new Map<number, number>(), second, third] = lists;
  if (bound === 0 || second === undefined || bitsOf(needs) <= 1) return { count: bound, exact: true };
  if (third === undefined) {
    if (first.size * second.size > mostKindsOfPairs) return { count: 0, exact: false };
    return { count: mostPairs([...first], [...second], needs), exact: true };
  }
  return search(lists, needs, bound);
}

/**
 * An upper bound: each team needs a member of each list, and for each need a member that covers it. With one list, or
 * with one need, it is exact.
 */
function upperBound(lists: readonly Kinds[], needs: number): number {
  if (lists.length === 1)
    return lists[0]?.entries().reduce((sum, [kind, count]) => sum + (kind === needs ? count : 0), 0) ?? 0;
  let bound = Math.min(...lists.map((kinds) => sumOf(kinds.values())));
  for (let need = 1; need <= needs; need *= 2) {
    if ((needs & need) === 0) continue;
    const covering = lists.map((kinds) =>
      sumOf(kinds.entries().map(([kind, count]) => ((kind & need) === 0 ? 0 : count))),
    );
    bound = Math.min(bound, sumOf(covering));
  }
  return bound;
}

const sumOf = (numbers: Iterable<number>): number => Iterator.from(numbers).reduce((sum, number) => sum + number, 0);

type ListedRoom = readonly (readonly [kind: number, count: number])[];

/** The largest number of pairs that cover all needs: a flow from the kinds of the first list to the kinds of the second list. */
function mostPairs(left: ListedRoom, right: ListedRoom, needs: number): number {
  const leftRoom = left.map(([, count]) => count);
  const rightRoom = right.map(([, count]) => count);
  const flow = left.map(() => right.map(() => 0));
  let pairs = 0;
  for (;;) {
    // Breadth first from the kinds that have members left; a step back dissolves pairs.
    const cameFrom = new Map<number, number>();
    const leftSeen = new Map<number, number>();
    const open = leftRoom.flatMap((room, index) => (room > 0 ? [index] : []));
    for (const index of open) leftSeen.set(index, -1);
    let end = -1;
    for (const from of open) {
      for (const [to, [kind]] of right.entries()) {
        if (cameFrom.has(to) || (((left[from]?.[0] ?? 0) | kind) & needs) !== needs) continue;
        cameFrom.set(to, from);
        if ((rightRoom[to] ?? 0) > 0) {
          end = to;
          break;
        }
        for (const [back, row] of flow.entries()) {
          if ((row[to] ?? 0) === 0 || leftSeen.has(back)) continue;
          leftSeen.set(back, to);
          open.push(back);
        }
      }
      if (end !== -1) break;
    }
    if (end === -1) return pairs;
    const way: { readonly from: number; readonly to: number; readonly back: number }[] = [];
    for (let to = end; to !== -1; ) {
      const from = cameFrom.get(to) ?? -1;
      const back = leftSeen.get(from) ?? -1;
      way.push({ from, to, back });
      to = back;
    }
    const start = way.at(-1)?.from ?? -1;
    const least = Math.min(
      rightRoom[end] ?? 0,
      leftRoom[start] ?? 0,
      ...way.flatMap(({ from, back }) => (back === -1 ? [] : [flow[from]?.[back] ?? 0])),
    );
    for (const { from, to, back } of way) {
      const row = flow[from];
      if (row === undefined) continue;
      row[to] = (row[to] ?? 0) + least;
      if (back !== -1) row[back] = (row[back] ?? 0) - least;
    }
    rightRoom[end] = (rightRoom[end] ?? 0) - least;
    leftRoom[start] = (leftRoom[start] ?? 0) - least;
    pairs += least;
  }
}

/** For three lists and more: tries how often to make each kind of team, until the bound is reached or all is tried. */
function search(lists: readonly Kinds[], needs: number, bound: number): Bounded {
  const left = lists.map((kinds) => new Map(kinds));
  const teams = kindsOfTeams(lists, needs);
  if (teams === undefined) return { count: 0, exact: false };
  const perStep = sumOf(lists.map(({ size }) => size)) * (1 + bitsOf(needs));
  const most = Math.min(mostSteps, Math.ceil(mostExamined / perStep));
  let steps = 0;
  let best = 0;
  const descend = (index: number, made: number): void => {
    best = Math.max(best, made);
    const team = teams[index];
    if (team === undefined || best === bound || ++steps > most) return;
    if (made + upperBound(left, needs) <= best) return;
    const fitting = Math.min(...team.map((kind, list) => left[list]?.get(kind) ?? 0));
    if (index === teams.length - 1) {
      best = Math.max(best, made + fitting);
      return;
    }
    const take = (times: number): void => {
      for (const [list, kind] of team.entries()) left[list]?.set(kind, (left[list]?.get(kind) ?? 0) - times);
    };
    for (let times = fitting; times >= 0; times--) {
      take(times);
      descend(index + 1, made + times);
      take(-times);
      if (best === bound || steps > most) return;
    }
  };
  descend(0, 0);
  return { count: best, exact: best === bound || steps <= most };
}

/** How many kinds of teams are listed at most. */
const mostKinds = 1000;

/** The kinds of teams that cover all needs, first those that cover few needs twice; undefined if there are too many. */
function kindsOfTeams(lists: readonly Kinds[], needs: number): readonly (readonly number[])[] | undefined {
  let teams: readonly (readonly number[])[] = [[]];
  for (const kinds of lists) {
    teams = teams.flatMap((team) => [...kinds.keys()].map((kind) => [...team, kind]));
    if (teams.length > mostKinds) return undefined;
  }
  const covered = (team: readonly number[]): number => team.reduce((all, kind) => all | kind, 0) & needs;
  const waste = (team: readonly number[]): number => sumOf(team.map((kind) => bitsOf(kind & needs)));
  return teams.filter((team) => covered(team) === needs).sort((a, b) => waste(a) - waste(b));
}

function bitsOf(kind: number): number {
  let bits = 0;
  for (let rest = kind; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}
