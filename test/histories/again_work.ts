import { type Chooser, newest, type Weighted } from './chooser.ts';
import { claim, claimTogether } from './claim_actions.ts';
import type { Wish } from './claim_rules.ts';
import { giveTo, release, setTerm } from './consumer_actions.ts';
import { oneClass } from './host_work.ts';
import { claimByQuery } from './placing_actions.ts';
import { readAllocations, readConsumer, readHolders, readSummaries } from './read_actions.ts';

/**
 * Requests to consumers that are removed, also at the end of a term, and claimed again under the same UUID, while clients which know a
 * former one go on to claim, to renew and to change the owner.
 */
export function againWork(choose: Chooser): readonly Weighted[] {
  const { arena, random, provider, consumer, owner, consumerGeneration } = choose;
  const version = () => random.pick([28, 38, 40, 41, newest, newest, newest]);
  const seconds = () => random.pick([1, 1, 2, 3600, undefined]);
  const wish = (uuid: string, minor: number): Wish => ({
    ...owner(uuid, minor),
    seconds: seconds(),
    allocations: { [provider()]: { VCPU: 1 + random.below(2) } },
  });
  const claimAnew = (minor: number) => {
    const uuid = consumer();
    return claim(minor, { ...wish(uuid, minor), generation: null });
  };
  return [
    [14, () => claimAnew(version())],
    [
      12,
      () => {
        const minor = version();
        return claim(minor, wish(consumer(), minor));
      },
    ],
    [
      4,
      () => {
        const minor = version();
        const [first, second] = arena.consumers;
        return claimTogether(
          minor,
          [first, second].flatMap((uuid) => (uuid === undefined ? [] : [wish(uuid, minor)])),
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
    [10, () => giveTo(random.pick([41, newest]), owner(consumer(), newest))],
    [16, () => release(random.pick([28, newest]), consumer())],
    [18, () => readAllocations(random.pick([28, 40, newest, newest]), consumer())],
    [6, () => readConsumer(random.pick([41, newest]), consumer())],
    [4, () => readHolders(random.pick([28, newest]), provider())],
    [2, () => readSummaries(newest, arena.providers)],
  ];
}
