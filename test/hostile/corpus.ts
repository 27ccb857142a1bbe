import type { Random } from '../races/random.ts';
import { type Hostile, hostileRequest } from './grammar.ts';

/* Requests of the grammar, which are made once and sent many times, mostly changed. */

/** A request of the corpus. */
export type Known = Hostile & {
  /** Whether the server once closed a connection with its answer. */
  hasClosed: boolean;
};

/** Requests of the grammar. */
export type Corpus = {
  /** One behind which others can follow on its connection. */
  keeping(): Known;
  /** One behind which nothing can follow. */
  ending(): Known;
  /** Any of them. */
  any(): Known;
};

/** So many requests are made at once, and used until so many were taken. */
const size = 4000;
const uses = 100_000;

/** Makes requests of the grammar, and others after a while. */
export function openCorpus(random: Random): Corpus {
  let all: readonly Known[] = [];
  let left = 0;
  const any = (): Known => {
    if (left === 0) {
      all = Array.from({ length: size }, () => ({ ...hostileRequest(random), hasClosed: false }));
      left = uses;
    }
    left -= 1;
    return random.pick(all);
  };
  const oneOf = (isEnding: boolean): Known => {
    for (;;) {
      const known = any();
      if ((known.hasClosed || known.isMisframed || known.mayWait) === isEnding) return known;
    }
  };
  return { any, keeping: () => oneOf(false), ending: () => oneOf(true) };
}
