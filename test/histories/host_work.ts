import type { Action } from './action.ts';
import { readCandidates } from './candidate_reads.ts';
import { type Chooser, newest, someAllocations, traits, type Weighted } from './chooser.ts';
import { claim, claimTogether } from './claim_actions.ts';
import type { Wish } from './claim_rules.ts';
import { giveTo, release, setTerm } from './consumer_actions.ts';
import { claimByQuery } from './placing_actions.ts';
import { removeOne, setAggregates, setTraits, stock, stockAnother, stockOne } from './provider_actions.ts';
import {
  providerReads,
  readAllocations,
  readConsumer,
  readHolders,
  readProjectUsages,
  readSummaries,
} from './read_actions.ts';
import { rename } from './tree_actions.ts';

/** A query for one class in the first aggregate of an arena. */
export const oneClass = ({ arena }: Pick<Chooser, 'arena'>, amount: number) => ({
  groups: [{ suffix: '', resources: { VCPU: amount }, memberOf: arena.aggregates[0] }],
});

/** Requests to hosts without children, whose inventories, traits, aggregates and names change. */
export function hostWork(choose: Chooser): readonly Weighted[] {
  const {
    arena,
    notes,
    random,
    provider,
    consumer,
    known,
    guarded,
    tagOf,
    versionFor,
    generationOf,
    owner,
    inventory,
  } = choose;
  const wish = (uuid: string, microversion: number, isEmpty = false): Wish => {
    const about = owner(uuid, microversion);
    return isEmpty
      ? { ...about, seconds: undefined, allocations: {} }
      : { ...about, allocations: someAllocations(choose) };
  };
  const ofProvider =
    (part: string, write: (uuid: string, microversion: number, tag: string | undefined) => Action) => () => {
      const uuid = provider();
      const tag = tagOf(`/resource_providers/${uuid}${part}`);
      return write(uuid, versionFor(tag), tag);
    };
  const resourceClass = () => random.pick(['VCPU', 'MEMORY_MB']);
  /** Two consumers whose allocations are read before both are written together. */
  let pair: readonly [string, string] = [known(), known()];
  return [
    [
      22,
      () => {
        const uuid = known();
        const tag = tagOf(`/allocations/${uuid}`);
        const microversion = versionFor(tag);
        return claim(microversion, wish(uuid, microversion), tag);
      },
    ],
    [4, () => claim(random.pick([1012, 1020, 1027]), wish(consumer(), 0))],
    [
      8,
      () => {
        const [first, second] = [consumer(), consumer()];
        const microversion = guarded();
        const wishes = [
          wish(first, microversion, random.percent(40)),
          ...(first === second ? [] : [wish(second, microversion)]),
        ];
        return claimTogether(microversion, wishes);
      },
    ],
    [
      7,
      () => {
        pair = [known(), consumer()];
        return readAllocations(newest, pair[0]);
      },
      () => readAllocations(newest, pair[1]),
      () => {
        const microversion = choose.tagged();
        const uuids = [...new Set(pair)];
        const seen = uuids.flatMap((uuid) => notes.tags.get(`/allocations/${uuid}`) ?? []);
        // Sometimes the tag of one of them is missing, so that the claim must be refused.
        const sent = random.percent(50) ? seen : seen.slice(1);
        const wishes = uuids.map((uuid) => wish(uuid, microversion, random.percent(20)));
        return claimTogether(microversion, wishes, sent.length > 0 ? sent.join(', ') : undefined);
      },
    ],
    [
      8,
      () =>
        claimByQuery(random.pick([2004, newest, newest]), {
          ...owner(consumer(), newest),
          query: oneClass(choose, 1 + random.below(3)),
        }),
    ],
    [
      8,
      () => {
        const uuid = known();
        return setTerm(newest, uuid, choose.consumerGeneration(uuid, newest), random.pick([1, 1, 2, 3600, null]));
      },
    ],
    [
      10,
      () => {
        const uuid = consumer();
        const tag = random.percent(30) ? tagOf(`/allocations/${uuid}`) : undefined;
        return release(tag === undefined ? random.pick([1012, 1028, 1039, newest]) : choose.tagged(), uuid, tag);
      },
    ],
    [4, () => giveTo(random.pick([2002, newest]), owner(consumer(), newest))],
    [
      5,
      ofProvider('/inventories', (uuid, microversion, tag) => {
        const all = { VCPU: inventory(), ...(random.percent(80) ? { MEMORY_MB: inventory() } : {}) };
        return stock(microversion, uuid, generationOf(uuid), all, tag);
      }),
    ],
    [
      3,
      ofProvider('/inventories', (uuid, microversion, tag) =>
        stockAnother(microversion, uuid, resourceClass(), inventory(), tag),
      ),
    ],
    [
      5,
      () => {
        const name = resourceClass();
        return ofProvider(`/inventories/${name}`, (uuid, microversion, tag) =>
          stockOne(microversion, uuid, generationOf(uuid), name, inventory(), tag),
        )();
      },
    ],
    [
      2,
      () => {
        const name = resourceClass();
        return ofProvider(`/inventories/${name}`, (uuid, microversion, tag) =>
          removeOne(microversion, uuid, name, tag),
        )();
      },
    ],
    [
      6,
      ofProvider('/traits', (uuid, microversion, tag) => {
        const chosen = traits.filter(() => random.percent(40));
        return setTraits(microversion, uuid, generationOf(uuid), chosen, tag);
      }),
    ],
    [
      4,
      ofProvider('/aggregates', (uuid, microversion, tag) => {
        const [first, second] = arena.aggregates;
        const chosen = random.pick([[first], [first, second], [first], [second]]);
        return setAggregates(microversion, uuid, generationOf(uuid), chosen, tag);
      }),
    ],
    [3, ofProvider('', (uuid, microversion, tag) => rename(microversion, uuid, choose.newName(uuid), tag))],
    [16, () => random.pick(providerReads)(random.pick([1028, 1036, 1039, 2001, 2004, newest]), provider())],
    [4, () => readHolders(guarded(), provider())],
    [14, () => readAllocations(random.pick([1028, 1038, 2001, newest]), consumer())],
    [3, () => readConsumer(random.pick([2002, newest]), consumer())],
    [4, () => readProjectUsages(random.pick([1009, 1028, 1037]), random.pick(arena.projects))],
    [10, () => readCandidates(random.pick([1034, 1036, 1039, newest]), oneClass(choose, 1 + random.below(4)))],
    [6, () => readSummaries(random.pick([2002, newest]), arena.providers)],
  ];
}
