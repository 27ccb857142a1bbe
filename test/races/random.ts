import type { TestContext } from 'node:test';
import { openRandom } from '../../src/demo/random.ts';
import { anySeed } from '../support/command_line.ts';

/** A reproducible source of choices: the same seed makes the same choices. */
export type Random = {
  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number;
  /** One of these values. */
  pick<Value>(values: readonly [Value, ...Value[]] | readonly Value[]): Value;
  /** True with this chance in per cent. */
  percent(chance: number): boolean;
  /** A separate source, for a caller that makes choices at the same time. */
  fork(): Random;
};

/** The seed of this run: `SEED` if it is set. It is printed, so that a failure can be repeated. */
export function seedFor(t: TestContext): number {
  const seed = process.env.SEED === undefined ? anySeed() : Number(process.env.SEED);
  t.diagnostic(`seed ${seed} (repeat with SEED=${seed}): ${t.name}`);
  return seed;
}

/** The choices of a seed. */
export function randomFrom(seed: number): Random {
  const next = openRandom(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    pick: (values) => {
      const place = below(values.length);
      if (place >= values.length) throw new Error('There is nothing to pick from.');
      return values[place] as (typeof values)[number]; // place is below the length
    },
    percent: (chance) => below(100) < chance,
    fork: () => randomFrom(next() * 2 ** 32),
  };
}

/** A UUID that depends only on the choices. */
export function randomUuid(random: Random): string {
  const hex = Array.from({ length: 32 }, () => random.below(16).toString(16)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** Some of these values, each with a chance of one half. */
export const someOf = <Value>(random: Random, values: readonly Value[]): Value[] =>
  values.filter(() => random.percent(50));
