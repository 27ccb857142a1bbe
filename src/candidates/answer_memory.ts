/**
 * Memory for long answers, which is used again once an answer was sent. V8 counts memory outside of its heap as a reason to
 * collect all of it: with memory of their own, 60 answers of 5 MB a second took 9 % of the time that way.
 */
const lent = new WeakSet<ArrayBufferLike>();
let idle: Buffer<ArrayBuffer>[] = [];

/** Below, V8 and the allocator do as well. */
const leastBytes = 64 * 1024;
/** As much is kept for the next answers: eight of 5 MB, which are on their way at once. */
const idleLimitBytes = 64 * 1024 * 1024;

/** Memory of at least so many bytes, whatever is in it. It may come back, once nobody reads or writes it any more. */
export function lendMemory(bytes: number): Buffer<ArrayBuffer> {
  if (bytes < leastBytes) return Buffer.allocUnsafeSlow(bytes);
  const size = 2 ** Math.ceil(Math.log2(bytes));
  const found = idle.find(({ length }) => length === size);
  if (found !== undefined) idle = idle.filter((other) => other !== found);
  const memory = found ?? Buffer.allocUnsafeSlow(size);
  lent.add(memory.buffer);
  return memory;
}

/**
 * Takes back memory by any part of it; whatever was not lent, or came back before, is none of its business. What has lain idle
 * longest goes where there is too much: answers may have another size now.
 */
export function takeBackMemory({ buffer }: Uint8Array<ArrayBuffer>): void {
  if (!lent.delete(buffer)) return;
  idle.push(Buffer.from(buffer));
  let idleBytes = idle.reduce((sum, { length }) => sum + length, 0);
  while (idleBytes > idleLimitBytes) idleBytes -= idle.shift()?.length ?? idleBytes;
}
