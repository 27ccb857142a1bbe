import type { Random } from '../races/random.ts';
import { type Answer, closes, keptBytes } from './answers.ts';
import type { Corpus, Known } from './corpus.ts';
import { overwritten, spoilt } from './mutations.ts';
import type { Valid } from './valid.ts';

/*
 * Trains: requests that are sent on one connection without waiting for answers. What may make the server read the following bytes
 * differently, or close the connection, comes last.
 */

/** A request of a train. */
type Car = {
  readonly bytes: Buffer;
  readonly isHead: boolean;
  readonly valid?: Valid;
  /** The request of the corpus, if it is sent unchanged. */
  readonly known?: Known;
};

/** Requests for one connection. */
export type Train = {
  readonly cars: readonly Car[];
  /** All bytes; they are sent in two parts if there is a `cutAt`. */
  readonly bytes: Buffer;
  readonly cutAt?: number;
  /** What comes at the end: `nothing` where the connection stays open. */
  readonly end: 'nothing' | 'half-close' | 'spoilt' | 'may wait';
};

/** How a connection looked when its train had all answers, or was abandoned. */
export type Outcome = {
  readonly answers: readonly Answer[];
  /** What is wrong with the bytes that came. */
  readonly problem?: string;
  /** The number of bytes behind the last answer. */
  readonly restBytes: number;
  readonly ended: 'answered' | 'closed by the server' | 'given up';
};

/** Makes a train. Of a hundred requests about 20 are valid, 40 from the corpus, and 40 from the corpus with other bytes. */
export function makeTrain(random: Random, corpus: Corpus, makeValid: () => Valid): Train {
  const cars = Array.from({ length: 8 + random.below(16) }, () => {
    if (random.percent(20)) return carOf(makeValid());
    const known = corpus.keeping();
    if (random.percent(50)) return { bytes: known.bytes, isHead: known.isHead, known };
    return { bytes: overwritten(known, random), isHead: known.isHead };
  });
  const kind = random.below(100);
  if (kind < 72) return train(cars, 'nothing', random);
  if (kind < 75) return train(cars, 'half-close', random);
  if (kind < 88) {
    const { bytes, isHead, mayWait } = corpus.any();
    return train([...cars, { bytes: spoilt(bytes, random), isHead }], mayWait ? 'may wait' : 'spoilt', random);
  }
  const last = corpus.ending();
  const car = { bytes: last.bytes, isHead: last.isHead, known: last };
  return train([...cars, car], last.mayWait ? 'may wait' : 'spoilt', random);
}

/** A train of valid requests. */
export const validTrain = (valid: readonly Valid[]): Train => trainOf(valid.map(carOf), 'nothing');

const carOf = (valid: Valid): Car => ({ bytes: valid.bytes, isHead: false, valid });

function trainOf(cars: readonly Car[], end: Train['end']): Train {
  return { cars, bytes: Buffer.concat(cars.map(({ bytes }) => bytes)), end };
}

function train(cars: readonly Car[], end: Train['end'], random: Random): Train {
  const made = trainOf(cars, end);
  return random.percent(15) ? { ...made, cutAt: random.below(made.bytes.length) } : made;
}

/**
 * Looks whether the answers are in number and in order, and notes which requests close a connection.
 *
 * @returns what is wrong
 */
export function judge({ cars, end }: Train, { answers, problem, restBytes, ended }: Outcome): string | undefined {
  const isComplete = answers.length >= cars.length;
  for (const [index, { valid }] of cars.entries()) valid?.onDone?.(index < answers.length);
  if (problem !== undefined) return problem;
  for (const [index, { status, head, body }] of answers.entries()) {
    const { valid, known } = cars[index] ?? {};
    if (status >= 500) return `answered ${status}`;
    if (valid !== undefined && !valid.statuses.includes(status)) return `${status} for a valid request: ${body}`;
    if (valid?.contained !== undefined && !body.includes(valid.contained))
      return `another answer than with ${valid.contained}: ${body}`;
    if (known !== undefined && index === answers.length - 1 && ended === 'closed by the server') known.hasClosed = true;
    const json = /\r\ncontent-type: application\/json\r\n/i.test(head) && body.length > 0 && body.length < keptBytes;
    if (json && !isJson(body)) return `an answer that is not JSON: ${body}`;
  }
  if (end === 'may wait') return answers.length < cars.length - 1 && !closes(answers.at(-1)) ? 'no answer' : undefined;
  // A request whose length is wrong, or that was spoilt, may be followed by what looks like one more, which is refused.
  const most = cars.length + (end === 'spoilt' ? 1 : 0);
  if (answers.length > most) return `${answers.length} answers to ${most} requests`;
  const last = answers.at(-1);
  // The answer to a HEAD that could not be parsed has a body: the server does not know its method.
  const isUnparsedHead = cars[answers.length - 1]?.isHead === true && last?.status === 400 && closes(last);
  if (restBytes > 0 && !isUnparsedHead) return `${restBytes} bytes of half an answer`;
  if (ended === 'given up') return `no answer to request ${answers.length + 1} of ${cars.length}`;
  const isRefused = ended === 'closed by the server' && closes(last);
  if (isComplete || isRefused || (end === 'spoilt' && answers.length === cars.length - 1)) return undefined;
  return `the connection was closed without a word after ${answers.length} of ${cars.length} answers`;
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}
