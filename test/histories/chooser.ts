import { placementService } from '../../src/placement/microversions.ts';
import { newestOf } from '../../src/placement/versions.ts';
import type { Random } from '../races/random.ts';
import type { Action } from './action.ts';
import type { Arena } from './arena.ts';
import type { Wish } from './claim_rules.ts';
import { noteOf, notesOf } from './consumer_generations.ts';
import type { Notes } from './notes.ts';
import type { Inventory } from './state.ts';

export const newest = newestOf(placementService);
export const traits = ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'STORAGE_DISK_SSD', 'COMPUTE_NODE'];

/**
 * How often some requests are chosen, and the requests. A client sends them one after the other, each made when the one before is
 * answered: the first and the last one to one server, and those between to another one, so that the first server may not know yet what
 * was done by the other when the last request comes.
 */
export type Weighted = readonly [weight: number, ...requests: readonly (() => Action)[]];

/** Random parts of requests to an arena, by what its clients have seen. */
export type Chooser = {
  readonly arena: Arena;
  readonly notes: Notes;
  readonly random: Random;
  provider(): string;
  consumer(): string;
  /** A consumer of which something is known, if there is one. */
  known(): string;
  /** A version in which the generations of providers and consumers guard writes. */
  guarded(): number;
  /** A version that has entity tags. */
  tagged(): number;
  /** Sometimes the tag that was seen last. */
  tagOf(path: string): string | undefined;
  /** As `guarded`, or as `tagged` where there is a tag. */
  versionFor(tag: string | undefined): number;
  /** The generation of a provider that was seen last, mostly. */
  generationOf(provider: string): number;
  /** The generation of a consumer that an answer of this version showed last; of some histories also a former one. */
  consumerGeneration(consumer: string, microversion: number): number | null;
  /** What a claim of this version sends besides allocations. */
  owner(consumer: string, microversion: number): Omit<Wish, 'allocations'>;
  inventory(): Inventory;
  /** A name that no provider of the arena has had. */
  newName(provider: string): string;
};

export function chooserFor(arena: Arena, notes: Notes, random: Random): Chooser {
  let names = 0;
  const consumer = () => random.pick(arena.consumers);
  const guarded = () => random.pick([1028, 1036, 1038, 2001, 2002, newest, newest]);
  const tagged = () => random.pick([2001, 2003, newest, newest]);
  const consumerGeneration = (uuid: string, microversion: number): number | null => {
    const note = noteOf(uuid, microversion);
    const seen = [...(notes.seen.get(note) ?? [])];
    if (arena.scene === 'again' && seen.length > 0 && random.percent(50)) return random.pick(seen);
    return notes.generations.get(note) ?? null;
  };
  return {
    arena,
    notes,
    random,
    provider: () => random.pick(arena.providers),
    consumer,
    known: () => {
      const seen = arena.consumers.filter((uuid) => notesOf(uuid).some((note) => notes.generations.has(note)));
      return seen.length > 0 ? random.pick(seen) : consumer();
    },
    guarded,
    tagged,
    tagOf: (path) => (random.percent(60) ? notes.tags.get(path) : undefined),
    versionFor: (tag) => (tag === undefined ? guarded() : tagged()),
    generationOf: (uuid) => (notes.generations.get(uuid) ?? 0) + (random.percent(5) ? 1 : 0),
    consumerGeneration,
    owner: (uuid, microversion) => ({
      uuid,
      project: random.pick(arena.projects),
      user: random.pick(['ada', 'bob']),
      type: random.pick(['INSTANCE', 'MIGRATION']),
      generation: consumerGeneration(uuid, microversion),
      // Most end soon after the clients have written a few things more.
      seconds: random.percent(60) ? random.pick([1, 1, 2, 3600]) : undefined,
      name: random.percent(60) ? random.pick(['train-7', 'eval-3', 'sim', null]) : undefined,
    }),
    inventory: () => {
      const total = 2 + random.below(5);
      return {
        total,
        reserved: random.below(2),
        min_unit: 1,
        max_unit: 1 + random.below(total),
        step_size: random.percent(80) ? 1 : 2,
        allocation_ratio: random.pick([1, 1.5, 2]),
      };
    },
    newName: (uuid) => {
      names += 1;
      return `${uuid} ${random.below(1000)}.${names}`;
    },
  };
}

/** Some amounts of one provider or two. */
export function someAllocations({ provider, random }: Chooser): Wish['allocations'] {
  const allocations: Record<string, Record<string, number>> = {};
  for (let left = 1 + random.below(2); left > 0; left -= 1) {
    const amounts = { VCPU: 1 + random.below(3), MEMORY_MB: 1 + random.below(2) };
    allocations[provider()] = random.percent(60) ? { VCPU: amounts.VCPU } : amounts;
  }
  return allocations;
}
