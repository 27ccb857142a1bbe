import { lendMemory, takeBackMemory } from './answer_memory.ts';

/** JSON that is being written. Candidates and summaries are copied into it as bytes. */
export type JsonWriter = {
  /** Appends text, which must be ASCII. */
  text(text: string): void;
  /** Appends bytes, without the first `skipped`. */
  bytes(bytes: Uint8Array, skipped?: number): void;
  /** Whether there is enough for a chunk. */
  isFull(): boolean;
  /**
   * Everything since the last chunk. The first chunk is in lent memory (answer_memory.ts). All answers are written in
   * the same buffer, so a caller must take what it wrote before it lets other code run.
   */
  take(): Uint8Array<ArrayBuffer>;
};

/** Between the members of lists and objects. */
export const separator = ', ';

const chunkBytes = 256 * 1024;
/**
 * An answer of up to this size is one chunk. After that, a longer answer comes in small chunks, so that it needs little
 * memory. The first chunk is full when it exceeds this size; with what was appended last it mostly fits into 8 MB, a
 * size of lent memory.
 */
const firstChunkBytes = 8 * 1024 * 1024 - chunkBytes;

/**
 * The buffer in which all chunks are written. Growing buffers for each answer would cause collections of V8's whole
 * heap.
 */
let scratch = lendMemory(chunkBytes);

/**
 * Copying bytes takes a fifth of the time of joining strings: 0.09 ms instead of 0.46 for 1,000 flat hosts with
 * summaries.
 */
export function jsonWriter(): JsonWriter {
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
        // Only an answer that is a single chunk is given back after it was sent.
        taken = enough === firstChunkBytes ? lendMemory(length).subarray(0, length) : Buffer.allocUnsafeSlow(length);
        taken.set(scratch.subarray(0, length));
      }
      length = 0;
      enough = chunkBytes;
      return taken;
    },
  };
}
