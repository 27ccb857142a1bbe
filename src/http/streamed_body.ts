import type { JsonChunks } from '../rest/json_body.ts';

/**
 * A body that is made while the client reads it.
 *
 * @param cutOff is called where making the body fails. It must close the connection: the client has the status already,
 *   and must not believe that the body is complete.
 */
export const streamedBody = (chunks: JsonChunks, cutOff: (error: unknown) => void): ReadableStream<Uint8Array> =>
  new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        cutOff(error);
        controller.close();
      }
    },
    cancel: () => {
      chunks.return();
    },
  });
