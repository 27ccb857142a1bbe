/** A JSON body from its chunks: the first where there is no other, else all as a stream. */
export function jsonText(chunks: Generator<string>): string | ReadableStream<Uint8Array> {
  const first = chunks.next();
  let next = chunks.next();
  if (next.done) return first.done ? '' : first.value;
  const encoder = new TextEncoder();
  let chunk = first.value;
  return new ReadableStream({
    pull: (controller) => {
      controller.enqueue(encoder.encode(chunk));
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
