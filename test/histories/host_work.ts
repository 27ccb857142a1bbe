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
  const wish = (uuid: string, minor: number, isEmpty = false): Wish => {
    const about = owner(uuid, minor);
    return isEmpty
      ? { ...about, seconds: undefined, allocations: {} }
      : { ...about, allocations: someAllocations(choose) };
  };
  const ofProvider = (part: string, write: (uuid: string, minor: number, tag: string | undefined) => Action) => () => {
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
        const minor = versionFor(tag);
        return claim(minor, wish(uuid, minor), tag);
      },
    ],
    [4, () => claim(random.pick([12, 20, 27]), wish(consumer(), 0))],
    [
      8,
      () => {
        const [first, second] = [consumer(), consumer()];
        const minor = guarded();
        const wishes = [wish(first, minor, random.percent(40)), ...(first === second ? [] : [wish(second, minor)])];
        return claimTogether(minor, wishes);
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
        const minor = choose.tagged();
        const uuids = [...new Set(pair)];
        const seen = uuids.flatMap((uuid) => notes.tags.get(`/allocations/${uuid}`) ?? []);
        // Sometimes the tag of one of them is missing, so that the claim must be refused.
        const sent = random.percent(50) ? seen : seen.slice(1);
        const wishes = uuids.map((uuid) => wish(uuid, minor, random.percent(20)));
        return claimTogether(minor, wishes, sent.length > 0 ? sent.join(', ') : undefined);
      },
    ],
    [
      8,
      () =>
        claimByQuery(random.pick([43, newest, newest]), {
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
        return release(tag === undefined ? random.pick([12, 28, 39, newest]) : choose.tagged(), uuid, tag);
      },
    ],
    [4, () => giveTo(random.pick([41, newest]), owner(consumer(), newest))],
    [
      5,
      ofProvider('/inventories', (uuid, minor, tag) => {
        const all = { VCPU: inventory(), ...(random.percent(80) ? { MEMORY_MB: inventory() } : {}) };
        return stock(minor, uuid, generationOf(uuid), all, tag);
      }),
    ],
    [3, ofProvider('/inventories', (uuid, minor, tag) => stockAnother(minor, uuid, resourceClass(), inventory(), tag))],
    [
      5,
      () => {
        const name = resourceClass();
        return ofProvider(`/inventories/${name}`, (uuid, minor, tag) =>
          stockOne(minor, uuid, generationOf(uuid), name, inventory(), tag),
        )();
      },
    ],
    [
      2,
      () => {
        const name = resourceClass();
        return ofProvider(`/inventories/${name}`, (uuid, minor, tag) => removeOne(minor, uuid, name, tag))();
      },
    ],
    [
      6,
      ofProvider('/traits', (uuid, minor, tag) => {
        const chosen = traits.filter(() => random.percent(40));
        return setTraits(minor, uuid, generationOf(uuid), chosen, tag);
      }),
    ],
    [
      4,
      ofProvider('/aggregates', (uuid, minor, tag) => {
        const [first, second] = arena.aggregates;
        const chosen = random.pick([[first], [first, second], [first], [second]]);
        return setAggregates(minor, uuid, generationOf(uuid), chosen, tag);
      }),
    ],
    [3, ofProvider('', (uuid, minor, tag) => rename(minor, uuid, choose.newName(uuid), tag))],
    [16, () => random.pick(providerReads)(random.pick([28, 36, 39, 40, 43, newest]), provider())],
    [4, () => readHolders(guarded(), provider())],
    [14, () => readAllocations(random.pick([28, 38, 40, newest]), consumer())],
    [3, () => readConsumer(random.pick([41, newest]), consumer())],
    [4, () => readProjectUsages(random.pick([9, 28, 37]), random.pick(arena.projects))],
    [10, () => readCandidates(random.pick([34, 36, 39, newest]), oneClass(choose, 1 + random.below(4)))],
    [6, () => readSummaries(random.pick([41, newest]), arena.providers)],
  ];
}
