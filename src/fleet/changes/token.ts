import { createHash } from 'node:crypto';
import type { Position } from './position.ts';

/*
 * A token says a position. It is base64url of: the form, the hash of the identity of the log, the numbers as varints (the
 * transactions under way as differences, downwards from `next`), and a check sum, by which a truncated token is told from one
 * of another database.
 */
const form = 1;
const logBytes = 9;
const checkBytes = 4;

/** The name of a log in tokens. @param identity as `readLogState` gives it */
export const logName = (identity: string): string => digest(identity).subarray(0, logBytes).toString('base64url');

/** The texts of positions that were asked for: many clients are told the same one. */
const texts = new WeakMap<Position, string>();

/** The token of a position, of some 30 to 400 characters that need no escape in a URL. */
export function tokenOf(position: Position): string {
  const known = texts.get(position);
  if (known !== undefined) return known;
  const text = textOf(position);
  texts.set(position, text);
  return text;
}

function textOf({ log, next, underWay }: Position): string {
  const bytes = [form, ...Buffer.from(log, 'base64url')];
  pushVarint(bytes, next);
  let previous = next;
  for (const xid of underWay.toReversed()) {
    pushVarint(bytes, previous - xid);
    previous = xid;
  }
  const body = Buffer.from(bytes);
  return Buffer.concat([body, digest(body).subarray(0, checkBytes)]).toString('base64url');
}

/** The position that a token says; undefined if the text is none. */
export function readToken(text: string): Position | undefined {
  if (!/^[\w-]{20,1000}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  const body = bytes.subarray(0, -checkBytes);
  if (bytes.toString('base64url') !== text || body[0] !== form) return undefined;
  if (!digest(body).subarray(0, checkBytes).equals(bytes.subarray(-checkBytes))) return undefined;
  const [next, ...differences] = varintsOf(body.subarray(1 + logBytes));
  if (next === undefined) return undefined;
  const underWay: number[] = [];
  let previous = next;
  for (const difference of differences) {
    previous -= difference;
    underWay.unshift(previous);
  }
  return { log: body.subarray(1, 1 + logBytes).toString('base64url'), next, underWay };
}

const digest = (content: string | Buffer): Buffer => createHash('sha256').update(content).digest();

/** Seven bits in each byte, the lowest first; the highest bit says that another byte follows. */
function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}

function varintsOf(bytes: Buffer): readonly number[] {
  const values: number[] = [];
  let value = 0;
  let unit = 1;
  for (const byte of bytes) {
    value += (byte % 128) * unit;
    unit *= 128;
    if (byte >= 128) continue;
    values.push(value);
    value = 0;
    unit = 1;
  }
  return values;
}
