import { placementService } from '../../src/rest/microversions.ts';
import type { Random } from '../races/random.ts';
import type { Action } from './action.ts';
import type { Arena, Notes } from './arena.ts';
import { claim, claimByQuery, claimTogether, giveTo, release, setTerm, type Wish } from './claim_actions.ts';
import { rename, setAggregates, setTraits, stock, stockOne } from './provider_actions.ts';
import {
  providerReads,
  readAllocations,
  readCandidates,
  readConsumer,
  readHolders,
  readProjectUsages,
  readSummaries,
} from './read_actions.ts';
import type { Inventory } from './state.ts';

const traits = ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'STORAGE_DISK_SSD', 'COMPUTE_NODE'];
export const newest = placementService.maxMinor;

/** Chooses requests to an arena, by what its clients have seen. */
export function randomActions(arena: Arena, notes: Notes, random: Random): () => Action {
  let names = 0;
  const provider = () => random.pick(arena.providers);
  const consumer = () => random.pick(arena.consumers);
  const guarded = () => random.pick([28, 36, 38, 40, 41, newest, newest]);
  const tagged = () => random.pick([40, 42, newest, newest]);
  const tagOf = (path: string) => (random.percent(60) ? notes.tags.get(path) : undefined);
  const generationOf = (uuid: string): number => (notes.generations.get(uuid) ?? 0) + (random.percent(5) ? 1 : 0);
  const seen = () => arena.consumers.filter((uuid) => notes.generations.has(uuid));
  const wish = (uuid: string, isEmpty = false): Wish => {
    const allocations: Record<string, Record<string, number>> = {};
    for (let left = isEmpty ? 0 : 1 + random.below(2); left > 0; left -= 1) {
      const amounts = { VCPU: 1 + random.below(3), MEMORY_MB: 1 + random.below(2) };
      allocations[provider()] = random.percent(60) ? { VCPU: amounts.VCPU } : amounts;
    }
    return {
      uuid,
      allocations,
      project: random.pick(arena.projects),
      user: random.pick(['ada', 'bob']),
      type: random.pick(['INSTANCE', 'MIGRATION']),
      generation: notes.generations.get(uuid) ?? null,
      // Most end soon after the clients have written a few things more.
      seconds: !isEmpty && random.percent(60) ? random.pick([1, 1, 2, 3600]) : undefined,
    };
  };
  const inventory = (): Inventory => {
    const total = 2 + random.below(5);
    return {
      total,
      reserved: random.below(2),
      min_unit: 1,
      max_unit: 1 + random.below(total),
      step_size: random.percent(80) ? 1 : 2,
      allocation_ratio: random.pick([1, 1.5, 2]),
    };
  };
  const readOne = (): Action => {
    const uuid = provider();
    return random.pick(providerReads)(random.pick([28, 36, 39, 40, 43, newest]), uuid);
  };
  const byWeight: readonly (readonly [weight: number, make: () => Action])[] = [
    [
      22,
      () => {
        const uuid = random.pick(seen().length > 0 ? seen() : arena.consumers);
        const tag = tagOf(`/allocations/${uuid}`);
        return tag === undefined ? claim(guarded(), wish(uuid)) : claim(tagged(), wish(uuid), tag);
      },
    ],
    [4, () => claim(random.pick([12, 20, 27]), wish(consumer()))],
    [
      8,
      () => {
        const [first, second] = [consumer(), consumer()];
        const wishes = [wish(first, random.percent(40)), ...(first === second ? [] : [wish(second)])];
        return claimTogether(guarded(), wishes);
      },
    ],
    [
      8,
      () =>
        claimByQuery(
          random.pick([43, newest, newest]),
          wish(consumer()),
          { VCPU: 1 + random.below(3) },
          arena.aggregates[0],
        ),
    ],
    [
      8,
      () => {
        const uuid = random.pick(seen().length > 0 ? seen() : arena.consumers);
        return setTerm(newest, uuid, notes.generations.get(uuid) ?? null, random.pick([1, 1, 2, 3600, null]));
      },
    ],
    [10, () => release(random.pick([12, 28, 39, newest]), consumer())],
    [4, () => giveTo(random.pick([41, newest]), wish(consumer()))],
    [
      5,
      () => {
        const uuid = provider();
        const tag = tagOf(`/resource_providers/${uuid}/inventories`);
        const all = { VCPU: inventory(), MEMORY_MB: inventory() };
        return stock(tag === undefined ? guarded() : tagged(), uuid, generationOf(uuid), all, tag);
      },
    ],
    [
      5,
      () => {
        const uuid = provider();
        const name = random.pick(['VCPU', 'MEMORY_MB']);
        const tag = tagOf(`/resource_providers/${uuid}/inventories/${name}`);
        return stockOne(tag === undefined ? guarded() : tagged(), uuid, generationOf(uuid), name, inventory(), tag);
      },
    ],
    [
      6,
      () => {
        const uuid = provider();
        const tag = tagOf(`/resource_providers/${uuid}/traits`);
        const chosen = traits.filter(() => random.percent(40));
        return setTraits(tag === undefined ? guarded() : tagged(), uuid, generationOf(uuid), chosen, tag);
      },
    ],
    [
      4,
      () => {
        const uuid = provider();
        const tag = tagOf(`/resource_providers/${uuid}/aggregates`);
        const [first, second] = arena.aggregates;
        const chosen = random.pick([[first], [first, second], [first], [second]]);
        return setAggregates(tag === undefined ? guarded() : tagged(), uuid, generationOf(uuid), chosen, tag);
      },
    ],
    [
      3,
      () => {
        const uuid = provider();
        names += 1;
        const tag = tagOf(`/resource_providers/${uuid}`);
        return rename(tag === undefined ? guarded() : tagged(), uuid, `${uuid} ${random.below(1000)}.${names}`, tag);
      },
    ],
    [16, readOne],
    [4, () => readHolders(guarded(), provider())],
    [14, () => readAllocations(random.pick([28, 38, 40, newest]), consumer())],
    [3, () => readConsumer(random.pick([41, newest]), consumer())],
    [4, () => readProjectUsages(random.pick([9, 28, 37]), random.pick(arena.projects))],
    [10, () => readCandidates(random.pick([29, 36, 39, newest]), 1 + random.below(4), arena.aggregates[0])],
    [6, () => readSummaries(random.pick([41, newest]), arena.providers)],
  ];
  const whole = byWeight.reduce((sum, [weight]) => sum + weight, 0);
  return () => {
    let left = random.below(whole);
    for (const [weight, make] of byWeight) {
      left -= weight;
      if (left < 0) return make();
    }
    return readOne();
  };
}

/** Reads of all that an arena has. */
export const readAll = (arena: Arena): readonly Action[] => [
  ...arena.providers.flatMap((uuid) => [...providerReads.map((of) => of(newest, uuid)), readHolders(newest, uuid)]),
  ...arena.consumers.map((uuid) => readAllocations(newest, uuid)),
  ...arena.projects.map((project) => readProjectUsages(37, project)),
  readCandidates(newest, 1, arena.aggregates[0]),
  readSummaries(newest, arena.providers),
];
