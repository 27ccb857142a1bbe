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
   * Everything since the last chunk. The first chunk is in lent memory (answer_memory.ts). Others may write meanwhile: what was
   * written and not taken yet is in a buffer of its own.
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
 * The buffer in which the next chunk is written, unless a writer has it. Growing buffers for each answer would cause
 * collections of V8's whole heap.
 */
let scratch: Buffer<ArrayBuffer> | undefined;

const nothing = Buffer.alloc(0);

/**
 * Copying bytes takes a fifth of the time of joining strings: 0.09 ms instead of 0.46 for 1,000 flat hosts with
 * summaries.
 */
export function jsonWriter(): JsonWriter {
  /** What is written in, from the first text of a chunk until the chunk is taken. */
  let own = nothing;
  let length = 0;
  let enough = firstChunkBytes;
  const makeRoomFor = (added: number): void => {
    if (length + added <= own.length) return;
    if (own === nothing) {
      own = scratch ?? lendMemory(chunkBytes);
      scratch = undefined;
      if (added <= own.length) return;
    }
    const larger = lendMemory(length + added);
    larger.set(own.subarray(0, length));
    takeBackMemory(own);
    own = larger;
  };
  return {
    text: (text) => {
      makeRoomFor(text.length);
      length += own.write(text, length, 'latin1');
    },
    bytes: (bytes, skipped = 0) => {
      makeRoomFor(bytes.length);
      own.set(skipped === 0 ? bytes : bytes.subarray(skipped), length);
      length += bytes.length - skipped;
    },
    isFull: () => length >= enough,
    take: () => {
      let taken = own.subarray(0, length);
      if (length > own.length / 2) {
        scratch ??= lendMemory(own.length);
      } else {
        // Only an answer that is a single chunk is given back after it was sent.
        taken = enough === firstChunkBytes ? lendMemory(length).subarray(0, length) : Buffer.allocUnsafeSlow(length);
        taken.set(own.subarray(0, length));
        if (scratch === undefined && own !== nothing) scratch = own;
        else takeBackMemory(own);
      }
      own = nothing;
      length = 0;
      enough = chunkBytes;
      return taken;
    },
  };
}
