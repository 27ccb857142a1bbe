import fc from 'fast-check';
import type { CandidateRequest } from '../../src/search/request.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { type Node, nodeAt, type Topology } from './topology.ts';

const stock = fc.record({
  total: fc.integer({ min: 1, max: 4 }),
  max_unit: fc.integer({ min: 1, max: 4 }),
  used: fc.nat(1),
});

const member = (index: number): fc.Arbitrary<Node> =>
  fc
    .record({ parent: fc.nat(Math.max(0, index - 1)), function: stock, cpu: stock, fast: fc.boolean() })
    .map(({ parent, function: ofFunction, cpu, fast }) => {
      const whole = { reserved: 0, min_unit: 1, step_size: 1, allocation_ratio: 1 };
      return nodeAt(index, {
        parent: index === 0 ? undefined : parent,
        stock: { SRIOV_NET_VF: { ...whole, ...ofFunction }, VCPU: { ...whole, ...cpu } },
        traits: fast ? ['CUSTOM_FAST'] : [],
      });
    });

/** One tree with many similar providers, each of which has little. */
export const crowdedTree: fc.Arbitrary<Topology> = fc.tuple(...[0, 1, 2, 3, 4].map(member));

const suffixes = ['1', '2', '3', '4', '5'];

/** Up to five groups that want the same classes: most combinations fail, and only with one of the last groups. */
export const crowdedRequest: fc.Arbitrary<CandidateRequest> = fc
  .record({
    groups: fc.array(
      fc.record({ functions: fc.integer({ min: 0, max: 2 }), cpus: fc.integer({ min: 0, max: 2 }), fast: fc.nat(3) }),
      { minLength: 3, maxLength: 5 },
    ),
    plain: fc.boolean(),
    isolate: fc.boolean(),
    subtree: fc.option(fc.subarray([0, 1, 2, 3, 4], { minLength: 2, maxLength: 3 }), { nil: undefined, freq: 2 }),
  })
  .map(({ groups, plain, isolate, subtree }) => {
    const wanted = groups.map(({ functions, cpus, fast }, index) => {
      const amounts = { SRIOV_NET_VF: cpus === 0 ? Math.max(1, functions) : functions, VCPU: cpus };
      const resources = Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
      const traits = { required: fast === 0 ? [['CUSTOM_FAST']] : [], forbidden: fast === 1 ? ['CUSTOM_FAST'] : [] };
      return groupOf(plain && index === 0 ? '' : (suffixes[index] ?? ''), resources, { traits });
    });
    const below = (subtree ?? []).filter((index) => index < groups.length && !(plain && index === 0));
    const sameSubtrees = below.length === 0 ? [] : [new Set(below.map((index) => suffixes[index] ?? ''))];
    return requestOf(wanted, { isolate, sameSubtrees });
  });
