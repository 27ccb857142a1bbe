import fc from 'fast-check';
import {
  aggregates,
  type Node,
  providerUuid,
  type Stock,
  sharingTrait,
  type Topology,
  traitNames,
} from './topology.ts';

/** Mostly with much room, sometimes at the limit of a rule: units, steps, reservations, ratios, over-use. */
const stock: fc.Arbitrary<Stock> = fc.record({
  total: often(fc.integer({ min: 4, max: 8 }), fc.integer({ min: 1, max: 3 })),
  reserved: often(fc.constant(0), fc.integer({ min: 0, max: 3 })),
  min_unit: often(fc.constant(1), fc.integer({ min: 1, max: 3 })),
  max_unit: often(fc.constant(8), fc.integer({ min: 1, max: 4 })),
  step_size: often(fc.constant(1), fc.integer({ min: 1, max: 2 })),
  allocation_ratio: often(fc.constant(1), fc.constantFrom(0.5, 0.9, 1.5, 4)),
  used: often(fc.constant(0), fc.integer({ min: 0, max: 6 })),
});

/** The first in nine of ten cases, else the second. */
export function often<T, U>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

const offered = fc.oneof({ weight: 3, arbitrary: stock }, { weight: 1, arbitrary: fc.constant(undefined) });

const node = (index: number): fc.Arbitrary<Node> =>
  fc
    .record({
      parent: fc.option(fc.nat(Math.max(0, index - 1)), { nil: undefined, freq: 2 }),
      stock: fc.record({ VCPU: offered, MEMORY_MB: offered, DISK_GB: offered, SRIOV_NET_VF: offered }),
      traits: fc.subarray(traitNames.filter((name) => name !== sharingTrait)),
      shares: fc.nat(4).map((one) => one === 0),
      aggregates: fc.subarray([...aggregates]),
    })
    .map(({ parent, traits, shares, ...rest }) => ({
      ...rest,
      uuid: providerUuid(index),
      parent: index === 0 ? undefined : parent,
      traits: shares ? [sharingTrait, ...traits] : traits,
    }));

/**
 * Up to seven providers in one or more trees of any shape. Some of them, anywhere in their tree, are sharing
 * providers.
 */
export const anyTopology: fc.Arbitrary<Topology> = fc
  .integer({ min: 1, max: 7 })
  .chain((size) => fc.tuple(...Array.from({ length: size }, (_, index) => node(index))));
