import { createHash } from 'node:crypto';
import { type LogPoint, partsOf } from '../../../db/fleet/change_log.ts';

/**
 * A point of a change log. The client has been told all rows of the transactions before `next`, but none of the transactions in
 * `underWay`, which had not ended. `next` follows the newest transaction that has rows in the log. A transaction without rows may
 * have a higher number, but after a crash of the server that number may be given again; one that was committed is never given
 * again.
 *
 * Transaction ids are numbers here: 2^53 transactions take centuries.
 */
export type Position = {
  /** The name of the log: after a failover the same numbers are other transactions. */
  readonly log: string;
  readonly next: number;
  readonly underWay: readonly number[];
};

/** A snapshot of the database, with numbers. */
export type Snapshot = { readonly xmax: number; readonly underWay: ReadonlySet<number> };

/** Parses PostgreSQL's text form of `pg_snapshot`. */
export function parseSnapshot(text: string): Snapshot {
  const { xmax, underWay } = partsOf(text);
  return { xmax: Number(xmax), underWay: new Set(underWay.map(Number)) };
}

/** The point of the log at which exactly what was told at a position was read. Its snapshot sees nothing else of the log. */
export const pointOf = ({ next, underWay }: Position): LogPoint => ({
  snapshot: `${underWay[0] ?? next}:${next}:${underWay.join()}`,
  lastXid: String(next - 1),
});

/**
 * How many transactions under way a position has at most, so that its token is short. With more of them it is taken to be before
 * the later ones: then some changes are told twice.
 */
const mostUnderWay = 64;

/** The position of what a snapshot sees. @param lastXid the newest transaction with rows in the log that the snapshot sees */
export function positionOf(log: string, { underWay }: Snapshot, lastXid: number): Position {
  const before = [...underWay].filter((xid) => xid <= lastXid).sort((a, b) => a - b);
  const first = before[mostUnderWay];
  return first === undefined
    ? { log, next: lastXid + 1, underWay: before }
    : { log, next: first, underWay: before.slice(0, mostUnderWay) };
}

/** Whether the rows of a transaction have been told at a position. */
export const isTold = ({ next, underWay }: Position, xid: number): boolean => xid < next && !underWay.includes(xid);

/** Whether at a position something has been told that was not read. @param lastXid the newest transaction of which rows were read */
export function isAhead({ next, underWay }: Position, snapshot: Snapshot, lastXid: number): boolean {
  if (next > lastXid + 1) return true;
  for (const xid of snapshot.underWay) if (xid < next && !underWay.includes(xid)) return true;
  return false;
}

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
