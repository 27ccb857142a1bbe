import fc from 'fast-check';
import {
  aggregates,
  type ClassName,
  classNames,
  type Node,
  providerUuid,
  type Stock,
  sharingTrait,
  type Topology,
  traitNames,
} from './topology.ts';

/** Mostly roomy, now and then at the edge of each rule: units, steps, reservations, ratios, over-use. */
const stock: fc.Arbitrary<Stock> = fc.record({
  total: fc.integer({ min: 1, max: 8 }),
  reserved: often(fc.constant(0), fc.integer({ min: 0, max: 3 })),
  min_unit: often(fc.constant(1), fc.integer({ min: 1, max: 3 })),
  max_unit: often(fc.constant(8), fc.integer({ min: 1, max: 4 })),
  step_size: often(fc.constant(1), fc.integer({ min: 1, max: 2 })),
  allocation_ratio: often(fc.constant(1), fc.constantFrom(0.5, 0.9, 1.5, 4)),
  used: often(fc.constant(0), fc.integer({ min: 0, max: 6 })),
});

/** The first in four of five cases, else the second. */
export function often<T>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

const node = (place: number): fc.Arbitrary<Node> =>
  fc
    .record({
      parent: fc.option(fc.nat(Math.max(0, place - 1)), { nil: undefined, freq: 2 }),
      stock: fc.record(
        Object.fromEntries(classNames.map((name) => [name, stock])) as Record<ClassName, typeof stock>, // the keys are those
        { requiredKeys: [] },
      ),
      traits: fc.subarray(traitNames.filter((name) => name !== sharingTrait)),
      shares: often(fc.constant(false), fc.constant(true)),
      aggregates: fc.subarray([...aggregates]),
    })
    .map(({ parent, traits, shares, ...rest }) => ({
      ...rest,
      uuid: providerUuid(place),
      parent: place === 0 ? undefined : parent,
      traits: shares ? [sharingTrait, ...traits] : traits,
    }));

/** Up to seven providers in one or more trees of any shape, some of them sharing, wherever they are in their tree. */
export const anyTopology: fc.Arbitrary<Topology> = fc
  .integer({ min: 1, max: 7 })
  .chain((size) => fc.tuple(...Array.from({ length: size }, (_, place) => node(place))));
