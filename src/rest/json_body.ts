/** JSON text in chunks, each made when it is asked for. */
export type JsonChunks = Generator<Uint8Array<ArrayBuffer>, void>;

/**
 * A JSON body from its chunks: the first chunk itself where it is the only one, otherwise all of them in turn.
 *
 * @throws what the generator throws for the first or the second chunk
 */
export function jsonBody(chunks: Generator<Uint8Array<ArrayBuffer>>): Uint8Array<ArrayBuffer> | JsonChunks {
  const first = chunks.next();
  const second = chunks.next();
  return second.done ? first.value : joined(first.value, second.value, chunks);
}

function* joined(
  first: Uint8Array<ArrayBuffer>,
  second: Uint8Array<ArrayBuffer>,
  others: Generator<Uint8Array<ArrayBuffer>>,
): JsonChunks {
  try {
    yield first;
    yield second;
    yield* others;
  } finally {
    others.return(undefined); // ends the generator also where the client leaves before it asks for the other chunks
  }
}
