import fc from 'fast-check';
import { withDrain } from '../../src/cli/drain_marks.ts';
import { markOfPool } from '../../src/cli/fleet/pool_mark.ts';
import { providerUuid, type WholeProvider } from '../../src/client/index.ts';

export const names = ['a', 'b', 'c', 'd', 'e', 'f', 'no', '2024-01-01'];
export const classes = ['VCPU', 'MEMORY_MB', 'CUSTOM_SLOT'];
export const traits = ['HW_CPU_X86_VMX', 'CUSTOM_FAST', 'CUSTOM_OLD'];
export const aggregates = ['a66e0000-0000-4000-8000-00000000000a', 'a66e0000-0000-4000-8000-00000000000b'];

const inventory = fc.record(
  {
    total: fc.integer({ min: 8, max: 99 }),
    reserved: fc.integer({ min: 0, max: 8 }),
    min_unit: fc.integer({ min: 1, max: 3 }),
    max_unit: fc.integer({ min: 3, max: 9 }),
    step_size: fc.integer({ min: 1, max: 2 }),
    allocation_ratio: fc.constantFrom(1, 1.1, 4),
  },
  { noNullPrototype: true },
);
const inventories = fc.dictionary(fc.constantFrom(...classes), inventory, { noNullPrototype: true });

/** A fleet: each provider is below an earlier one or a root; some were made by a file, some are drained, some in use. */
export const randomFleet: fc.Arbitrary<readonly WholeProvider[]> = fc
  .tuple(
    fc.subarray(names),
    fc.infiniteStream(fc.nat()),
    fc.infiniteStream(inventories),
    fc.infiniteStream(fc.subarray([...traits, markOfPool('ours'), markOfPool('theirs')])),
    fc.infiniteStream(fc.subarray(aggregates)),
    fc.infiniteStream(fc.constantFrom('drained', 'used', 'free', 'free')),
  )
  .map(([chosen, parents, stocks, qualities, groups, states]) => {
    const made: WholeProvider[] = [];
    const next = <Item>(stream: Iterator<Item>): Item => stream.next().value;
    for (const [index, name] of chosen.entries()) {
      const parent = made[(next(parents) % (index + 2)) - 1];
      const uuid = index % 2 === 0 ? providerUuid(name) : `00000000-0000-4000-8000-00000000000${index}`;
      const state = next(states);
      const provider: WholeProvider = {
        uuid,
        name,
        generation: 5,
        parent_provider_uuid: parent?.uuid ?? null,
        root_provider_uuid: parent?.root_provider_uuid ?? uuid,
        inventories: next(stocks),
        usages: {},
        traits: next(qualities),
        aggregates: next(groups),
      };
      const usages = Object.fromEntries(
        Object.keys(provider.inventories).map((one) => [one, state === 'used' ? 1 : 0]),
      );
      made.push({ ...(state === 'drained' ? withDrain(provider) : provider), usages });
    }
    return made;
  });
