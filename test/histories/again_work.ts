import { type Chooser, newest, type Weighted } from './chooser.ts';
import { claim, claimTogether } from './claim_actions.ts';
import type { Wish } from './claim_rules.ts';
import { giveTo, release, setTerm } from './consumer_actions.ts';
import { oneClass } from './host_work.ts';
import { claimByQuery } from './placing_actions.ts';
import { readAllocations, readConsumer, readHolders, readSummaries } from './read_actions.ts';

/**
 * Requests to consumers that are removed, also at the end of a term, and claimed again under the same UUID, while clients which know a
 * former one continue to claim, to renew and to change the owner.
 */
export function againWork(choose: Chooser): readonly Weighted[] {
  const { arena, random, provider, consumer, owner, consumerGeneration } = choose;
  const version = () => random.pick([1028, 1038, 2001, 2002, newest, newest, newest]);
  const seconds = () => random.pick([1, 1, 2, 3600, undefined]);
  const wish = (uuid: string, microversion: number): Wish => ({
    ...owner(uuid, microversion),
    seconds: seconds(),
    allocations: { [provider()]: { VCPU: 1 + random.below(2) } },
  });
  const claimAnew = (microversion: number) => {
    const uuid = consumer();
    return claim(microversion, { ...wish(uuid, microversion), generation: null });
  };
  return [
    [14, () => claimAnew(version())],
    [
      12,
      () => {
        const microversion = version();
        return claim(microversion, wish(consumer(), microversion));
      },
    ],
    [
      4,
      () => {
        const microversion = version();
        const [first, second] = arena.consumers;
        return claimTogether(
          microversion,
          [first, second].flatMap((uuid) => (uuid === undefined ? [] : [wish(uuid, microversion)])),
        );
      },
    ],
    [6, () => claimByQuery(newest, { ...owner(consumer(), newest), seconds: seconds(), query: oneClass(choose, 1) })],
    [
      16,
      () => {
        const uuid = consumer();
        return setTerm(newest, uuid, consumerGeneration(uuid, newest), random.pick([1, 1, 2, null]));
      },
    ],
    [10, () => giveTo(random.pick([2002, newest]), owner(consumer(), newest))],
    [16, () => release(random.pick([1028, newest]), consumer())],
    [18, () => readAllocations(random.pick([1028, 2001, newest, newest]), consumer())],
    [6, () => readConsumer(random.pick([2002, newest]), consumer())],
    [4, () => readHolders(random.pick([1028, newest]), provider())],
    [2, () => readSummaries(newest, arena.providers)],
  ];
}
