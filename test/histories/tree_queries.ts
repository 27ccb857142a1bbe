import type { Group, Query } from './candidates.ts';
import type { Chooser } from './chooser.ts';

/** The traits that providers of trees have. */
export const traitsOfTrees = ['HW_CPU_X86_AVX', 'COMPUTE_NODE'];

/** Random queries in which all parameters occur. */
export function queriesOfTrees({ arena, random, provider, consumer }: Chooser): () => Query {
  const [first = '', second = ''] = arena.classes;
  const some = (name: string) => ({ [name]: 1 + random.below(2) });
  const maybe = <Part extends object>(chance: number, part: () => Part): Part | Record<never, never> =>
    random.percent(chance) ? part() : {};
  const trait = () => random.pick(traitsOfTrees);
  const conditions = (): Partial<Group> => ({
    ...maybe(15, () => ({ required: [trait()] })),
    ...maybe(15, () => ({ memberOf: arena.aggregates[0] })),
  });
  const groups: readonly (() => Omit<Query, 'with' | 'apartFrom'>)[] = [
    () => ({ groups: [{ suffix: '', resources: some(first), inTree: provider() }] }),
    () => ({ groups: [{ suffix: '_A', resources: some(first), inTree: provider() }] }),
    () => ({ groups: [{ suffix: '', resources: some(first), ...conditions() }] }),
    () => ({ groups: [{ suffix: '', resources: some(first), forbidden: [trait()] }] }),
    () => ({ groups: [{ suffix: '', resources: { ...some(first), ...some(second) }, ...conditions() }] }),
    () => ({
      groups: [
        { suffix: '', resources: some(second), ...maybe(30, () => ({ inTree: provider() })) },
        { suffix: '_A', resources: some(first), ...conditions() },
      ],
    }),
    () => ({
      groups: [
        { suffix: '_A', resources: { [first]: 1 }, ...conditions() },
        { suffix: '_B', resources: some(first), ...maybe(30, () => ({ inTree: provider() })) },
      ],
      isolate: random.percent(60),
    }),
    () => ({
      groups: [
        { suffix: '_A', resources: some(second) },
        { suffix: '_B', resources: some(first) },
      ],
      sameSubtree: ['_A', '_B'],
    }),
    () => ({
      groups: [
        { suffix: '_A', resources: some(first) },
        { suffix: '_B', resources: {}, required: [trait()] },
      ],
      sameSubtree: ['_A', '_B'],
    }),
  ];
  return () => ({
    ...random.pick(groups)(),
    ...maybe(15, () => ({ rootRequired: 'COMPUTE_NODE' })),
    ...maybe(25, () => ({ order: random.pick([`free:${first}`, `-free:${first}`, 'prefer:COMPUTE_NODE', 'random']) })),
    ...(random.percent(15) ? { with: [consumer()] } : maybe(45, () => ({ apartFrom: [consumer()] }))),
  });
}
