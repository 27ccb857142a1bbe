import { hash } from 'node:crypto';
import { type LogPoint, snapshotParts } from '../../../db/fleet/change_log.ts';
import type { ChangedParts } from '../../../db/fleet/changed_parts.ts';
import type { LogState } from '../../../db/fleet/log_position.ts';

/**
 * A point of a change log. The client has got all rows of the transactions before `next`, but none of the transactions in
 * `underWay`, which had not ended. `next` follows the newest transaction that has rows in the log. A transaction without rows may
 * have a higher number, but after a crash of the server that number may be assigned again. The number of a committed transaction is
 * never assigned again.
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
type Snapshot = { readonly xmax: number; readonly underWay: ReadonlySet<number> };

/** Parses PostgreSQL's text form of `pg_snapshot`. */
function parseSnapshot(text: string): Snapshot {
  const { xmax, underWay } = snapshotParts(text);
  return { xmax: Number(xmax), underWay: new Set(underWay.map(Number)) };
}

/** The point of the log at a position. Its snapshot sees exactly the rows that a client has got at the position. */
export const pointOf = ({ next, underWay }: Position): LogPoint => ({
  pgSnapshot: `${underWay[0] ?? next}:${next}:${underWay.join()}`,
  lastXid: String(next - 1),
});

/**
 * The largest number of transactions under way in a position, so that its token is short. If there are more, `next` is set before the
 * later ones: then some changes are delivered twice.
 */
const mostUnderWay = 64;

/** The position that a snapshot has reached. @param lastXid the newest transaction with rows in the log that the snapshot sees */
function positionOf(log: string, { underWay }: Snapshot, lastXid: number): Position {
  const before = [...underWay].filter((xid) => xid <= lastXid).sort((a, b) => a - b);
  const first = before[mostUnderWay];
  return first === undefined
    ? { log, next: lastXid + 1, underWay: before }
    : { log, next: first, underWay: before.slice(0, mostUnderWay) };
}

/** Whether the rows of a transaction have been delivered at a position. */
const isDelivered = ({ next, underWay }: Position, xid: number): boolean => xid < next && !underWay.includes(xid);

/**
 * Whether a client at this position has got rows that the fleet has not read.
 *
 * @param lastXid the newest transaction whose rows the fleet has read
 */
function isAhead({ next, underWay }: Position, snapshot: Snapshot, lastXid: number): boolean {
  if (next > lastXid + 1) return true;
  for (const xid of snapshot.underWay) if (xid < next && !underWay.includes(xid)) return true;
  return false;
}

/*
 * A token encodes a position. It is base64url of: the form, the hash of the identity of the log, the numbers as varints (the
 * transactions under way as differences, downwards from `next`), and a check sum, which distinguishes a truncated token from a
 * token of another database.
 */
const form = 1;
const logBytes = 9;
const checkBytes = 4;

/** The name of a log in tokens. @param identity as `readLogState` gives it */
const logName = (identity: string): string => digest(identity).subarray(0, logBytes).toString('base64url');

/** The tokens of positions that were sent: many clients get the same one. */
const texts = new WeakMap<Position, string>();

/** The token of a position: some 30 to 400 characters that need no escape in a URL. */
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

/** The position that a token encodes; undefined if the text is no token. */
export function readToken(text: string): Position | undefined {
  if (!/^[\w-]{20,1000}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  const body = bytes.subarray(0, -checkBytes);
  // Other texts lead to the same bytes, such as one with a further letter.
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

const digest = (content: string | Buffer): Buffer => hash('sha256', content, 'buffer');

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

/** The entries that refreshes of the fleet have recently read from the change log, for clients that follow. */
export type RecentChanges = {
  /** The position that the fleet shows. The object stays the same until something is logged, or the fleet is loaded. */
  readonly position: Position;
  /** Whether the fleet has reached a position: it is of this log (same database, same timeline), and the fleet shows all of it. */
  hasReached(position: Position): boolean;
  /** The entries between a position that the fleet has reached and the present position; undefined where they are not in memory. */
  since(position: Position): readonly ChangedParts[] | undefined;
  /** From now on, and for some minutes, refreshes read which parts changed. */
  record(): void;
  /** Whether refreshes should read which parts changed. */
  isRecording(): boolean;
  /** Adds the entries that a refresh read. Without `changedParts` the changed parts are unknown, and the record begins anew. */
  note(refresh: {
    readonly pgSnapshot: string;
    readonly lastXid: string | null;
    readonly changedParts?: readonly ChangedParts[] | null | undefined;
  }): void;
  /** Begins a new record, after the fleet was loaded. */
  restart(loaded: LoadedChanges): void;
};

type LoadedChanges = { readonly pgSnapshot: string; readonly log: LogState };

/** The end of the log at a refresh: `end` rows since the beginning. */
type Mark = {
  readonly end: number;
  readonly position: Position;
  readonly lastXid: number;
  readonly snapshot: Snapshot;
};

/** How long refreshes record after a request of a client, in milliseconds. */
const recordMs = 5 * 60_000;
/** How many rows are kept: a second or more of the fastest claims, and some 10 MB. Older rows are read from the log. */
const usualRows = 50_000;

/** @param mostRows how many rows are kept in memory */
export function createRecentChanges(loaded: LoadedChanges, mostRows = usualRows): RecentChanges {
  let log: string;
  let lastXid: number;
  let snapshot: Snapshot;
  /** Rows by the refresh that read them, the oldest first. */
  let rows: ChangedParts[] = [];
  /** The first mark is at the first row; each other mark is behind the rows of a refresh. */
  let marks: Mark[] = [];
  let present: Position;
  let recordUntilMs = 0;

  const restart = ({ pgSnapshot: text, log: state }: LoadedChanges): void => {
    log = logName(state.identity);
    lastXid = Number(state.lastXid);
    snapshot = parseSnapshot(text);
    forget();
  };
  const move = (): void => {
    present = positionOf(log, snapshot, lastXid);
  };
  const forget = (): void => {
    move();
    rows = [];
    marks = [{ end: 0, position: present, lastXid, snapshot }];
  };
  restart(loaded);

  /** Forgets the oldest half. */
  const shorten = (): void => {
    const kept = marks.findIndex(({ end }) => end >= rows.length - mostRows / 2);
    const start = marks[kept]?.end ?? 0;
    rows = rows.slice(start);
    marks = marks.slice(kept).map((mark) => ({ ...mark, end: mark.end - start }));
  };
  /** Whether all rows that are not delivered at a position are in memory, if the rows behind a mark are. */
  const isBehind = (position: Position, mark: Mark): boolean =>
    position.next > mark.lastXid &&
    position.underWay.every((xid) => xid >= mark.snapshot.xmax || mark.snapshot.underWay.has(xid));

  return {
    get position() {
      return present;
    },
    hasReached: (position) => position.log === log && !isAhead(position, snapshot, lastXid),
    isRecording: () => performance.now() < recordUntilMs,
    record: () => {
      recordUntilMs = performance.now() + recordMs;
    },
    since: (position) => {
      if (position === present) return [];
      const at = marks.findLast((mark) => mark.position === position);
      if (at !== undefined) return rows.slice(at.end);
      const behind = marks.findLast((mark) => isBehind(position, mark));
      return behind && rows.slice(behind.end).filter(([xid]) => !isDelivered(position, Number(xid)));
    },
    note: ({ pgSnapshot: text, lastXid: xid, changedParts }) => {
      snapshot = parseSnapshot(text);
      if (xid === null) return;
      lastXid = Math.max(lastXid, Number(xid));
      if (changedParts === undefined) {
        forget();
        return;
      }
      move();
      for (const row of changedParts ?? []) rows.push(row);
      marks.push({ end: rows.length, position: present, lastXid, snapshot });
      if (rows.length > mostRows || marks.length > mostRows) shorten();
    },
    restart,
  };
}
