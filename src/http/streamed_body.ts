import type { JsonChunks } from '../rest/json_body.ts';

/**
 * A body that is made while the client reads it.
 *
 * @param cutOff is called where making the body fails. It must close the connection: the client has the status already,
 *   and must not believe that the body is complete.
 */
export function streamedBody(chunks: JsonChunks, cutOff: (error: unknown) => void): ReadableStream<Uint8Array> {
  /** Whether the client has left: that may be while the next chunk is made. */
  let hasLeft = false;
  return new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = await chunks.next();
        if (hasLeft) return;
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        if (hasLeft) return;
        cutOff(error);
        controller.close();
      }
    },
    cancel: () => {
      hasLeft = true;
      chunks.return();
    },
  });
}
