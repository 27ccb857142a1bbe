import fc from 'fast-check';
import { anyTopology } from '../random_topology.ts';
import { aggregates, sharingTrait, type Topology } from '../topology.ts';
import { scarce } from './scarce.ts';

/** Up to five providers that have little. About half of them share, and nearly all share aggregates; some topologies are flat. */
export const sharedStock: fc.Arbitrary<Topology> = fc
  .record({
    topology: anyTopology.map(scarce),
    shares: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    isFlat: fc.boolean(),
    groups: fc.array(fc.subarray([...aggregates], { minLength: 1 }), { minLength: 5, maxLength: 5 }),
  })
  .map(({ topology, shares, isFlat, groups }) =>
    topology.map((node, index) => {
      const others = node.traits.filter((name) => name !== sharingTrait);
      return {
        ...node,
        parent: isFlat ? undefined : node.parent,
        traits: shares[index] ? [sharingTrait, ...others] : others,
        aggregates: groups[index] ?? [],
      };
    }),
  );
