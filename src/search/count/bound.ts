import { type Provider, treeSize } from '../../fleet/model/provider.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import { granularProviders, optionsByClass } from '../options.ts';
import { greatestCommonDivisor } from '../order.ts';
import { overspends, type Work } from '../request.ts';
import type { ResolvedGroup, ResolvedRequest } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { roomAt, timesAt, timesOfGroup } from './room.ts';

/**
 * An upper bound for how many consumers can be placed at some anchors. It follows from what the providers have that
 * each group may take from, from what there is of each class, and with isolation from the number of providers.
 *
 * @param work the budget of the count: where it is not enough, the bound is higher than it had to be
 * @param turns those after which the work pauses
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
    for (const [place, group] of groups.entries()) {
      for (const [at, providers] of optionsOf(group, anchor, usable).entries()) {
        for (const provider of providers) sources[place]?.[at]?.add(provider);
      }
    }
  }
  let bound = Number.POSITIVE_INFINITY;
  for (const [place, group] of groups.entries()) {
    bound = Math.min(bound, mostOfGroup(group, sources[place] ?? []));
    if (turns?.isOver(sources[place]?.[0]?.size)) yield undefined;
  }
  const granular = groups.flatMap((group, place) =>
    group.granular ? [{ group, providers: sources[place]?.[0] ?? new Set<Provider>() }] : [],
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
    ...group.resources.map(({ classId, amount }, place) =>
      sum(sources[place] ?? first, (provider) => timesAt(provider, classId, amount)),
    ),
  );
}

/**
 * For each class, how many consumers it is enough for, if the providers of all groups are taken together. At each
 * provider only a multiple of the greatest common divisor of the amounts can be used.
 */
function* mostByClass(
  groups: readonly ResolvedGroup[],
  sources: readonly (readonly Providers[])[],
  turns: Turns | undefined,
): Pieces<number> {
  const asked = Map.groupBy(
    groups.flatMap(({ granular, resources }, place) =>
      resources.map(({ classId, amount }, at) => ({ classId, amount, providers: sources[place]?.[granular ? 0 : at] })),
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
 * With isolation each consumer takes from a provider for one group only. So for any set of groups it needs at least as
 * many different providers as the set has groups. One provider can be one of these for each consumer.
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
      if (overspends(work, some.length * looksOfTimes)) return bound;
      if (turns?.isOver(some.length * looksOfTimes)) yield undefined;
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
    if (isEnough(middle)) enough = middle;
    else tooMany = middle;
  }
  return enough;
}

/** What `timesOfAny` costs for each group, in looks. */
const looksOfTimes = 4;

/** All sets of two or more groups. With very many groups: each pair, and the set of all groups. */
function setsOf(granular: readonly Granular[]): readonly (readonly Granular[])[] {
  if (granular.length > mostGroupsInSets) {
    const pairs = granular.flatMap((one, place) => granular.slice(place + 1).map((other) => [one, other]));
    return [...pairs, granular];
  }
  return Array.from({ length: 2 ** granular.length }, (_, bits) =>
    granular.filter((_group, place) => bits & (2 ** place)),
  ).filter((some) => some.length > 1);
}

/** An upper bound for the number of consumers that can each take from a provider what one of the groups asks for. */
function timesOfAny(provider: Provider, granular: readonly Granular[]): number {
  const groups = granular.flatMap(({ group, providers }) => (providers.has(provider) ? [group] : []));
  const [first, ...others] = groups;
  // Of a class that all groups ask for, each consumer takes at least the smallest amount of the groups.
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
