/**
 * Memory for long answers, which is used again after an answer was sent. New memory outside of V8's heap makes V8
 * collect the whole heap more often: with new memory for each answer, 60 answers of 5 MB per second spent 9 % of the
 * time in that.
 */
const lent = new WeakSet<ArrayBufferLike>();
let idle: Buffer<ArrayBuffer>[] = [];

/** For less than this, memory that is used again is not faster than new memory. */
const leastBytes = 64 * 1024;
/** How much unused memory is kept for the next answers: that of eight answers of 5 MB, which take 8 MB each. */
const idleLimitBytes = 64 * 1024 * 1024;

/** Memory of at least this size, with any content. It may be given back when no code reads or writes it any more. */
export function lendMemory(bytes: number): Buffer<ArrayBuffer> {
  if (bytes < leastBytes) return Buffer.allocUnsafe(bytes);
  const size = 2 ** Math.ceil(Math.log2(bytes));
  const found = idle.find(({ length }) => length === size);
  if (found !== undefined) idle = idle.filter((other) => other !== found);
  const memory = found ?? Buffer.allocUnsafeSlow(size);
  lent.add(memory.buffer);
  return memory;
}

/**
 * Takes back lent memory, given as any part of it; ignores memory that was not lent, or was taken back before. If too
 * much is unused, what was unused for longest is dropped: answers may have another size now.
 */
export function takeBackMemory({ buffer }: Uint8Array<ArrayBuffer>): void {
  if (!lent.delete(buffer)) return;
  idle.push(Buffer.from(buffer));
  let idleBytes = idle.reduce((sum, { length }) => sum + length, 0);
  while (idleBytes > idleLimitBytes) idleBytes -= idle.shift()?.length ?? idleBytes;
}
