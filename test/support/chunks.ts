import { openTurns, type Turns } from '../../src/request/turns.ts';
import type { JsonChunks } from '../../src/rest/json_body.ts';

/** The chunks of a body, as a client reads them. */
export async function* readChunks(body: JsonChunks): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (;;) {
    const { done, value } = await body.next();
    if (done) return;
    yield value;
  }
}

/** The text of all chunks, also after pauses. */
export const textOfChunks = (chunks: Iterable<Uint8Array | undefined>): string =>
  Buffer.concat([...chunks].filter((chunk) => chunk !== undefined)).toString();

/** Turns that are over whenever the test says so. */
export const turnsThatEnd = (isOver: Turns['isOver']): Turns => ({ ...openTurns(), isOver });

/** For what is not to be held: nothing changes. */
export const holdNothing = () => ({ end: () => {} });
