import { type Chooser, newest, type Weighted } from './chooser.ts';
import { claim, claimTogether, reshape } from './claim_actions.ts';
import type { Wish } from './claim_rules.ts';
import { giveTo, release } from './consumer_actions.ts';
import { oneClass } from './host_work.ts';
import { deleteLimits, readLimits, setLimits } from './limit_actions.ts';
import { claimByQuery } from './placing_actions.ts';
import { readAllocations, readInventories, readProjectUsages } from './read_actions.ts';

/** Requests that raise what two projects have, which have limits or none, and requests that change the limits. */
export function limitWork(choose: Chooser): readonly Weighted[] {
  const { arena, notes, random, provider, consumer, owner, generationOf } = choose;
  const version = () => random.pick([1012, 1028, 1038, 2001, newest, newest, newest]);
  const project = () => random.pick(arena.projects);
  const wish = (uuid: string, microversion: number): Wish => ({
    ...owner(uuid, microversion),
    seconds: random.percent(20) ? 1 : undefined,
    allocations: { [provider()]: random.percent(70) ? { VCPU: 1 + random.below(3) } : { MEMORY_MB: 1 } },
  });
  const limit = () => {
    const of = project();
    const resources = random.percent(80) ? { VCPU: random.below(7) } : {};
    const consumers = random.percent(40) ? { [random.pick(['all', 'INSTANCE'])]: random.below(4) } : {};
    return setLimits(of, { resources, consumers, generation: notes.generations.get(of) ?? null });
  };
  return [
    [
      26,
      () => {
        const microversion = version();
        return claim(microversion, wish(consumer(), microversion));
      },
    ],
    [
      8,
      () => {
        const [first, second] = [consumer(), consumer()];
        const microversion = random.pick([1028, 1038, newest]);
        return claimTogether(microversion, [
          wish(first, microversion),
          ...(first === second ? [] : [wish(second, microversion)]),
        ]);
      },
    ],
    [
      12,
      () => {
        // Allocations move from one consumer to another: the sum of the project stays the same.
        const [from, to] = [choose.known(), consumer()];
        const [giver, taker] = [wish(from, newest), wish(to, newest)];
        return from === to
          ? claim(newest, taker)
          : claimTogether(newest, [
              { ...giver, allocations: {}, seconds: undefined },
              { ...taker, project: giver.project },
            ]);
      },
    ],
    [10, () => claimByQuery(newest, { ...owner(consumer(), newest), seconds: undefined, query: oneClass(choose, 1) })],
    [10, () => giveTo(newest, owner(consumer(), newest))],
    // A reshape may raise what a project has above its limits.
    [
      4,
      () => {
        const uuid = provider();
        const inventories = arena.initial.providers[uuid]?.inventories ?? {};
        return reshape(newest, [{ uuid, generation: generationOf(uuid), inventories }], [wish(consumer(), newest)]);
      },
    ],
    [12, () => release(random.pick([1028, newest]), consumer())],
    [10, limit],
    [6, limit, limit],
    [4, () => deleteLimits(project())],
    [12, () => readLimits(project())],
    [8, () => readAllocations(newest, consumer())],
    [4, () => readInventories(newest, provider())],
    [4, () => readProjectUsages(1037, project())],
  ];
}
