/** A JSON body from its chunks: the first where there is no other, else all as a stream. */
export function jsonBody(
  chunks: Generator<Uint8Array<ArrayBuffer>>,
): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  const first = chunks.next();
  let next = chunks.next();
  if (next.done) return first.value;
  let chunk = first.value;
  return new ReadableStream({
    pull: (controller) => {
      controller.enqueue(chunk);
      if (next.done) {
        controller.close();
        return;
      }
      chunk = next.value;
      next = chunks.next();
    },
    cancel: () => {
      chunks.return(undefined);
    },
  });
}
