import fc from 'fast-check';
import { anyTree, type CandidateRequest, type RequestGroup } from '../../src/search/request.ts';
import { often } from './random_topology.ts';
import { aggregates, classNames, emptyAggregate, providerUuid, traitNames } from './topology.ts';

const none = fc.constant<[]>([]);
const someTraits = (max: number) => fc.subarray([...traitNames], { minLength: 1, maxLength: max });
const someAggregates = fc.subarray([...aggregates, emptyAggregate], { minLength: 1, maxLength: 2 });

const traits: fc.Arbitrary<RequestGroup['traits']> = fc
  .record({
    required: often(none, fc.array(someTraits(3), { minLength: 1, maxLength: 2 })),
    forbidden: often(none, someTraits(1)),
  })
  // A request that requires and forbids the same trait is refused before any search.
  .map(({ required, forbidden }) => ({
    required,
    forbidden: forbidden.filter((name) => !required.some((anyOf) => anyOf.every((each) => each === name))),
  }));

const aggregateFilter: fc.Arbitrary<RequestGroup['aggregates']> = fc.record({
  required: often(none, fc.array(someAggregates, { minLength: 1, maxLength: 2 })),
  forbidden: often(none, someAggregates),
});

/** The provider after the last possible one, for a tree that does not exist. */
const inTree = often(
  fc.constant(undefined),
  fc.integer({ min: 0, max: 7 }).map((index) => [providerUuid(index)]),
);

const resources = (min: number) =>
  fc
    .subarray([...classNames], { minLength: min, maxLength: 2 })
    .chain((names) =>
      fc
        .array(fc.integer({ min: 1, max: 3 }), { minLength: names.length, maxLength: names.length })
        .map((amounts) => new Map(names.map((name, index) => [name as string, amounts[index] ?? 1]))),
    );

const group = (suffix: string, minResources: number): fc.Arbitrary<RequestGroup> =>
  fc.record({
    suffix: fc.constant(suffix),
    resources: resources(minResources),
    traits,
    aggregates: aggregateFilter,
    inTree,
  });

const rootTraits = often(
  fc.record({ required: none, forbidden: none }),
  fc
    .record({
      required: fc.subarray([...traitNames], { maxLength: 1 }),
      forbidden: fc.subarray([...traitNames], { maxLength: 1 }),
    })
    .map(({ required, forbidden }) => ({ required, forbidden: forbidden.filter((name) => !required.includes(name)) })),
);

const ordered = (groups: readonly RequestGroup[]) => fc.shuffledSubarray([...groups], { minLength: groups.length });

/**
 * Requests that the parser accepts: the group without suffix and up to three granular ones in any order, at least one
 * with resources. Before 1.29 clients do not know trees. A group without resources is in some same_subtree.
 */
export const anyRequest: fc.Arbitrary<CandidateRequest> = fc
  .record({
    plain: fc.option(group('', 1), { nil: undefined, freq: 3 }),
    granular: fc.tuple(
      fc.option(group('_CPU', 1), { nil: undefined, freq: 3 }),
      fc.option(group('_NET', 1), { nil: undefined, freq: 2 }),
      fc.option(group('_3', 0), { nil: undefined, freq: 2 }),
    ),
    fallback: group('', 1),
    isolate: fc.boolean(),
    rootTraits,
    subtrees: often(
      fc.constant<string[][]>([]),
      fc.array(fc.subarray(['_CPU', '_NET', '_3'], { minLength: 1 }), { minLength: 1, maxLength: 2 }),
    ),
    nested: often(fc.constant(true), fc.constant(false)),
  })
  .chain(({ plain, granular, fallback, isolate, rootTraits, subtrees, nested }) => {
    const chosen = [plain, ...granular].flatMap((each) => each ?? []);
    const usable = nested ? chosen : chosen.filter((each) => each.resources.size > 0);
    const groups = usable.some((each) => each.resources.size > 0) ? usable : [...usable.filter(isNamed), fallback];
    const suffixes = groups.map(({ suffix }) => suffix);
    const named = subtrees.map((each) => new Set(each.filter((suffix) => suffixes.includes(suffix))));
    const resourceless = groups.filter((each) => each.resources.size === 0).map(({ suffix }) => suffix);
    if (resourceless.length > 0)
      named.push(new Set([...resourceless, ...suffixes.filter((suffix) => suffix === '_CPU')]));
    return ordered(groups).map((groups) => ({
      groups,
      limit: undefined,
      isolate,
      rootTraits: nested ? rootTraits : { required: [], forbidden: [] },
      sameSubtrees: nested ? named.filter(({ size }) => size > 0) : [],
      nested,
      ...anyTree,
    }));
  });

const isNamed = ({ suffix }: RequestGroup): boolean => suffix !== '';
