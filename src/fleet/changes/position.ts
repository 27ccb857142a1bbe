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
