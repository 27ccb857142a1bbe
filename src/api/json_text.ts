/** Up to this many characters an answer is made at once; a longer one is sent as it is made, so that it needs no memory. */
const wholeUpTo = 8 * 1024 * 1024;

/** How much of a long answer is made at a time, in characters. */
const chunkLength = 256 * 1024;

/** JSON text from its pieces: as a whole where it is short enough, else as a stream. */
export function jsonText(pieces: Generator<string>): string | ReadableStream<Uint8Array> {
  const [start, done] = take(pieces, wholeUpTo);
  if (done) return start;
  const encoder = new TextEncoder();
  let text = start;
  return new ReadableStream({
    pull: (controller) => {
      controller.enqueue(encoder.encode(text));
      const [next, ended] = take(pieces, chunkLength);
      text = next;
      if (!ended) return;
      controller.enqueue(encoder.encode(text));
      controller.close();
    },
    cancel: () => {
      pieces.return(undefined);
    },
  });
}

/** Takes pieces until they are at least as long as asked for, or at their end. */
function take(pieces: Generator<string>, length: number): readonly [text: string, done: boolean] {
  let text = '';
  while (text.length < length) {
    const { done, value } = pieces.next();
    if (done) return [text, true];
    text += value;
  }
  return [text, false];
}
