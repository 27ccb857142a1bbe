import { changedTooMuch, type Hold, type TooWide, type Turns } from '../request/turns.ts';

type Chunk = Uint8Array<ArrayBuffer>;

/** Makes the JSON text of an answer in chunks. It yields undefined where others may have a turn before it goes on. */
export type ChunkMaker = Generator<Chunk | undefined, void>;

/** JSON text in chunks, each made when it is asked for. */
export type JsonChunks = {
  /** @throws Error where the rest cannot be made, so that the client must not take the answer for complete */
  next(): IteratorResult<Chunk, undefined> | Promise<IteratorResult<Chunk, undefined>>;
  /** Ends the making of chunks. It must be called also where the client leaves before it asks for all of them. */
  return(): void;
};

/**
 * A JSON body from its chunks: the first chunk itself where it is the only one, otherwise all of them in turn.
 *
 * @param hold called where others get a turn before the answer is complete, and where there is more than one chunk
 * @param tooWide the error where the chunks take too much work
 * @throws what the generator throws for the first or the second chunk; what the turns throw before these
 */
export async function jsonBody(
  chunks: ChunkMaker,
  hold: Hold,
  turns: Turns,
  tooWide?: TooWide,
): Promise<Chunk | JsonChunks> {
  const held = heldChunks(chunks, hold, turns, tooWide);
  // Where nothing was awaited nothing may be: the moment is not held yet.
  let first = held.next();
  if (first instanceof Promise) first = await first;
  let second = held.next();
  if (second instanceof Promise) second = await second;
  if (first.done || second.done) {
    held.return();
    return first.value ?? new Uint8Array();
  }
  // From here on they are made while the client reads.
  held.hold();
  const made = [first, second];
  return { next: () => made.shift() ?? held.nextAfterOthers(), return: held.return };
}

/** Chunks of one moment: it is held as soon as anything may happen between two of them. */
function heldChunks(chunks: ChunkMaker, hold: Hold, turns: Turns, tooWide: TooWide | undefined) {
  /** What makes the chunks. It is forgotten at the end of any kind, since it refers to everything that the chunks are made of. */
  let maker: ChunkMaker | undefined = chunks;
  let moment: ReturnType<Hold> | undefined;
  let isLost = false;
  const forget = (): void => {
    maker?.return(undefined);
    maker = undefined;
    moment?.end();
  };
  const holdNow = (): void => {
    moment ??= hold(() => {
      isLost = true;
      forget();
    });
  };
  const next = (): ReturnType<JsonChunks['next']> => {
    turns.begin();
    return goOn();
  };
  /** Goes on in a turn that has begun. */
  const goOn = (): ReturnType<JsonChunks['next']> => {
    if (isLost) throw changedTooMuch();
    try {
      const step = maker?.next() ?? done;
      if (!step.done && step.value === undefined) return afterOthers();
      turns.end();
      if (!step.done && step.value !== undefined) return { done: false, value: step.value };
      forget();
      return done;
    } catch (error) {
      turns.end();
      forget();
      throw error;
    }
  };
  const afterOthers = async (): Promise<IteratorResult<Chunk, undefined>> => {
    try {
      holdNow();
      await turns.pass(tooWide);
    } catch (error) {
      forget();
      throw error;
    }
    return goOn();
  };
  /** A client that reads fast asks for the next chunk at once, before others are served. */
  const nextAfterOthers = async (): ReturnType<typeof afterOthers> => {
    await turns.rest();
    return next();
  };
  return { next, nextAfterOthers, hold: holdNow, return: forget };
}

const done = { done: true, value: undefined } as const;
