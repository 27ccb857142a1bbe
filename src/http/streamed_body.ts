import type { JsonChunks } from '../api/json_body.ts';

/**
 * A body that is made as the client takes it.
 *
 * @param cutOff is called where making it fails, and must close the connection: the client has the status already, and must not
 *   take what has come for the whole
 */
export const streamedBody = (chunks: JsonChunks, cutOff: (error: unknown) => void): ReadableStream<Uint8Array> =>
  new ReadableStream({
    pull: (controller) => {
      try {
        const { done, value } = chunks.next();
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
