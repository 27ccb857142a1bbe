import type { ChangedParts } from '../../../db/fleet/changed_parts.ts';
import type { LogState } from '../../../db/fleet/log_position.ts';
import { isAhead, isTold, logName, type Position, parseSnapshot, positionOf, type Snapshot } from './position.ts';

/** What refreshes of the fleet read from the change log lately, for clients that follow. */
export type RecentChanges = {
  /** The position that the fleet shows. It is the same object until something is logged, or the fleet is loaded. */
  readonly position: Position;
  /** Whether the fleet has reached a position: it is of this log (same database, same timeline), and the fleet shows all of it. */
  hasReached(position: Position): boolean;
  /** What was logged between a position that the fleet has reached and the present one; undefined where this is not in memory. */
  since(position: Position): readonly ChangedParts[] | undefined;
  /** From now on, and for some minutes, refreshes read which parts changed. */
  record(): void;
  /** Whether refreshes should read which parts changed. */
  isRecording(): boolean;
  /** Takes what a refresh read. Without `told` the parts are unknown, and what was recorded ends there. */
  note(refresh: {
    readonly snapshot: string;
    readonly lastXid: string | null;
    readonly told?: readonly ChangedParts[] | null | undefined;
  }): void;
  /** Begins anew, after the fleet was loaded. */
  restart(loaded: Loaded): void;
};

type Loaded = { readonly snapshot: string; readonly log: LogState };

/** What was logged until a refresh: `end` rows since the beginning. */
type Mark = {
  readonly end: number;
  readonly position: Position;
  readonly lastXid: number;
  readonly snapshot: Snapshot;
};

/** How long refreshes record after a client asked, in milliseconds. */
const recordMs = 5 * 60_000;
/** How many rows are kept: a second or more of the fastest claims, and some 10 MB. Older ones are read from the log. */
const usualRows = 50_000;

/** @param mostRows how many rows are kept in memory */
export function createRecentChanges(loaded: Loaded, mostRows = usualRows): RecentChanges {
  let log = logName(loaded.log.identity);
  let lastXid = 0;
  let snapshot: Snapshot;
  /** Rows by the refresh that read them, oldest first, between the marks `first` and the last. */
  let rows: ChangedParts[] = [];
  /** The first mark is that of the first row; each other one is behind the rows of a refresh. */
  let marks: Mark[] = [];
  let present: Position;
  let recordUntilMs = 0;

  const restart = ({ snapshot: text, log: state }: Loaded): void => {
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
  /** Whether all rows that are not told at a position are in memory, if those behind a mark are. */
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
      return behind && rows.slice(behind.end).filter(([xid]) => !isTold(position, Number(xid)));
    },
    note: ({ snapshot: text, lastXid: xid, told }) => {
      snapshot = parseSnapshot(text);
      if (xid === null) return;
      lastXid = Math.max(lastXid, Number(xid));
      if (told === undefined) {
        forget();
        return;
      }
      move();
      for (const row of told ?? []) rows.push(row);
      marks.push({ end: rows.length, position: present, lastXid, snapshot });
      if (rows.length > mostRows || marks.length > mostRows) shorten();
    },
    restart,
  };
}
