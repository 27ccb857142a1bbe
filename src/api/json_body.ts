/** JSON as it is made, in pieces. */
export type JsonChunks = Generator<Uint8Array<ArrayBuffer>, void>;

/**
 * A JSON body from its chunks: the first where there is no other, else all of them.
 *
 * @throws what making the first or the second throws
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
    others.return(undefined); // for a client that leaves before the others were asked for
  }
}
