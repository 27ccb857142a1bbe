/** JSON text in chunks, each made when it is asked for. */
export type JsonChunks = Iterable<Uint8Array<ArrayBuffer>> & {
  /** @throws Error where the rest cannot be made, so that the client must not take the answer for complete */
  next(): IteratorResult<Uint8Array<ArrayBuffer>, undefined>;
  /** Ends the making of chunks. It must be called also where the client leaves before it asks for all of them. */
  return(): IteratorResult<Uint8Array<ArrayBuffer>, undefined>;
};

/** Holds what chunks are made of, as it is now, until `end` is called; calls `giveUp` if it cannot be held any longer. */
type Hold = (giveUp: () => void) => { end(): void };

/**
 * A JSON body from its chunks: the first chunk itself where it is the only one, otherwise all of them in turn.
 *
 * @param hold called at once where there is more than one chunk, since the others are made later
 * @throws what the generator throws for the first or the second chunk
 */
export function jsonBody(chunks: Generator<Uint8Array<ArrayBuffer>>, hold: Hold): Uint8Array<ArrayBuffer> | JsonChunks {
  const first = chunks.next();
  const second = chunks.next();
  return second.done ? first.value : chunksOf([first.value, second.value], chunks, hold);
}

const done = { done: true, value: undefined } as const;

function chunksOf(made: Uint8Array<ArrayBuffer>[], others: Generator<Uint8Array<ArrayBuffer>>, hold: Hold): JsonChunks {
  /** What makes the rest. It is forgotten at the end, however that comes: it refers to all that the chunks are made of. */
  let rest: typeof others | undefined = others;
  let isLost = false;
  const forget = (): void => {
    rest?.return(undefined);
    rest = undefined;
    moment.end();
  };
  const moment = hold(() => {
    isLost = true;
    forget();
  });
  const next = (): ReturnType<JsonChunks['next']> => {
    const value = made.shift();
    if (value !== undefined) return { done: false, value };
    if (isLost)
      throw new Error('The client read its answer so slowly that too much of what it shows has changed meanwhile.');
    try {
      const more = rest?.next() ?? done;
      if (!more.done) return more;
    } catch (error) {
      forget();
      throw error;
    }
    forget();
    return done;
  };
  const chunks: JsonChunks = {
    next,
    return: () => {
      forget();
      return done;
    },
    [Symbol.iterator]: () => chunks,
  };
  return chunks;
}
