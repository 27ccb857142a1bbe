import type { Random } from '../races/random.ts';
import type { Hostile } from './grammar.ts';
import { numbers, texts } from './words.ts';

/* Changes of the bytes of requests. */

const words = [...numbers, ...texts].map((word) => Buffer.from(word));

/** Bytes of the target or of the body are replaced, and the request ends where it ended before. */
export function overwritten({ bytes, target: [start, end], bodyStart }: Hostile, random: Random): Buffer {
  const changed = Buffer.from(bytes);
  const inBody = bodyStart < bytes.length && random.percent(70);
  const [from, to] = inBody ? [bodyStart, bytes.length] : [start, end];
  if (from >= to) return changed;
  for (let left = 1 + random.below(3); left > 0; left -= 1) {
    const at = from + random.below(to - from);
    if (inBody && random.percent(40))
      random.pick(words).copy(changed, at); // the end of the buffer ends the word
    else changed[at] = inBody ? random.below(256) : 0x21 + random.below(94);
  }
  return changed;
}

/** Bytes are removed, repeated or added anywhere, one to four times. */
export function spoilt(bytes: Buffer, random: Random): Buffer {
  let changed = bytes;
  for (let left = 1 + random.below(4); left > 0; left -= 1) {
    const at = random.below(changed.length + 1);
    const length = random.below(8);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at + length)];
    const piece = changed.subarray(at, at + length);
    const junk = Buffer.from(Array.from({ length: random.below(4) }, () => random.below(256)));
    const parts = random.pick([
      [before, after],
      [before, junk, after],
      [before, piece, piece, after],
      [before, random.pick(words), after],
      [before],
    ]);
    changed = Buffer.concat(parts);
  }
  return changed;
}
