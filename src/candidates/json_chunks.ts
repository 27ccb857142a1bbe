import { lendMemory, takeBackMemory } from './answer_memory.ts';

/** JSON under way: candidates and summaries are copied, as bytes, from what was written before. */
export type JsonChunks = {
  /** Appends text, which must be ASCII. */
  text(text: string): void;
  /** Appends bytes, without the first `skipped`. */
  bytes(bytes: Uint8Array, skipped?: number): void;
  /** Whether there is enough for a chunk. */
  isFull(): boolean;
  /**
   * Everything since the last chunk; the first chunk is in lent memory. All chunks are made in the same place: whoever lets
   * other code run takes what there is first.
   */
  take(): Uint8Array<ArrayBuffer>;
};

/** Between the members of lists and objects. */
export const separator = ', ';

const chunkBytes = 256 * 1024;
/**
 * Up to this many bytes an answer is one chunk; the rest of a longer one comes in small ones, so that it needs no memory. With
 * what makes it full it fits into 8 MB, a size in which memory is lent.
 */
const firstChunkBytes = 8 * 1024 * 1024 - chunkBytes;

/** Where chunks are made, all of them: what grows in a buffer of its own leaves several behind, which cost whole collections. */
let scratch = lendMemory(chunkBytes);

/** Copying bytes costs a fifth of joining strings: 1,000 flat candidates with their summaries take 0.09 ms instead of 0.46. */
export function jsonChunks(): JsonChunks {
  let length = 0;
  let enough = firstChunkBytes;
  const makeRoomFor = (added: number): void => {
    if (length + added <= scratch.length) return;
    const larger = lendMemory(length + added);
    larger.set(scratch.subarray(0, length));
    takeBackMemory(scratch);
    scratch = larger;
  };
  return {
    text: (text) => {
      makeRoomFor(text.length);
      length += scratch.write(text, length, 'latin1');
    },
    bytes: (bytes, skipped = 0) => {
      makeRoomFor(bytes.length);
      scratch.set(skipped === 0 ? bytes : bytes.subarray(skipped), length);
      length += bytes.length - skipped;
    },
    isFull: () => length >= enough,
    take: () => {
      let taken = scratch.subarray(0, length);
      if (length > scratch.length / 2) {
        scratch = lendMemory(scratch.length);
      } else {
        // Only what is sent as a whole comes back.
        taken = enough === firstChunkBytes ? lendMemory(length).subarray(0, length) : Buffer.allocUnsafeSlow(length);
        taken.set(scratch.subarray(0, length));
      }
      length = 0;
      enough = chunkBytes;
      return taken;
    },
  };
}
