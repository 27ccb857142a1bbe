import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import {
  type EnteredClaim,
  fetchWaitingNews,
  lostRows,
  noteAlive,
  type WaitingNews,
} from '../../../db/statements/claims/waiting.ts';
import type { ApiError } from '../../request/errors.ts';
import { coalesceCalls } from './coalesced_calls.ts';
import type { WaitingRows } from './rows.ts';
import { lineOf, takenOver, type Waiter, waitEnded } from './waiter.ts';

/** The time between two reads of which claims are the first of their lines; shorter while the first one is of another process. */
const [readEveryMs, readElsewhereEveryMs] = [100, 40];
/**
 * If no claim of another process was before a claim of this process for this long, the process assumes that its lines have no claims of
 * other processes.
 */
const aloneAfterMs = 1_000;
/** How long to wait after a read that failed. */
const afterFailureMs = 500;

/** The lines of this process: whose turn it is, and whether other processes have changed the rows of its claims. */
export type WaitingLines = {
  /** Puts a claim into its line by its number. */
  enter(waiter: Waiter, claim: Pick<EnteredClaim, 'number' | 'isFirst'>): void;
  /** Removes a claim, if it is in a line: the next claim has its turn. */
  leave(waiter: Waiter): void;
  /** Checks in the database when the turn of a claim comes that was refused because it was not its turn, or because its row was missing. */
  checkTurn(waiter: Waiter): void;
  /** Does not check the turn of a claim any more. */
  dropTurnCheck(waiter: Waiter): void;
  /** The first claim of each line of this process. */
  firsts(): readonly Waiter[];
  /** Reads which claims are the first of their lines, if some are in lines. */
  readNews(): void;
  /** Does `readNews`, if the last time is long enough ago. */
  readNewsIfDue(): void;
  /**
   * Notes in the database that this process is alive, and stores claims again whose rows are missing: another process has deleted the
   * rows, because it took this process for dead, or has taken them over; or another program has deleted them.
   */
  keepRows(): Promise<void>;
};

/** Events of a claim. */
type LineEvents = {
  /** It is the turn of a claim. */
  onTurn(waiter: Waiter): void;
  /** A claim may be written if it fits: no other process has claims of its line, or its row is stored again. */
  onMayFit(waiter: Waiter): void;
  /** Another request may have written the consumers of a claim. */
  onDoubtful(waiter: Waiter): void;
  /** The row of a claim is being stored again: the claim waits only for its number. */
  onReentering(waiter: Waiter): void;
  onEnded(waiter: Waiter, error: ApiError): void;
};

/**
 * Starts without claims.
 *
 * @param process the id of this process in the rows
 * @param waiters the claims of this process by their keys
 * @param seats how many of them wait
 */
export function openWaitingLines(
  database: Database,
  process: string,
  {
    waiters,
    seats,
    rows,
  }: {
    readonly waiters: ReadonlyMap<string, Waiter>;
    readonly seats: { readonly size: number };
    readonly rows: Pick<WaitingRows, 'enter'>;
  },
  events: LineEvents,
): WaitingLines {
  /** The claims of each line that have numbers, in the order of the numbers. */
  const lines = new Map<string, Waiter[]>();
  /** Claims without a line that were refused because their rows are missing, or because their wait was ended. */
  const rowChecks = new Set<Waiter>();
  let readAtMs = 0;
  /** When a claim of another process was found before one of this process. */
  let elsewhereAtMs = Number.NEGATIVE_INFINITY;

  const leave = (waiter: Waiter): void => {
    const line = lines.get(lineOf(waiter));
    const index = line?.indexOf(waiter) ?? -1;
    if (line === undefined || index === -1) return;
    line.splice(index, 1);
    const [next] = line;
    if (next === undefined) lines.delete(lineOf(waiter));
    else if (index > 0) return;
    // If no other process had a first claim recently, the next claim of the line is assumed to be of this process; its write proves it.
    else if (next.state === 'in line' && next.isPredictable && performance.now() - elsewhereAtMs > aloneAfterMs)
      events.onMayFit(next);
    else void readNews();
  };

  /** Reads from the database which claims are the first ones of their lines, and which claims another process has ended. */
  const readNews = coalesceCalls({
    failed: () => {
      readAtMs = performance.now() + afterFailureMs;
    },
    run: async () => {
      if (seats.size === 0) return;
      const firsts = [...lines.values()].flatMap(([first]) => (first?.state === 'in line' ? [first.key] : []));
      const checked = Array.from(rowChecks, ({ key }) => key);
      const news = await repeatLostRaces(() => fetchWaitingNews(database, process, [...firsts, ...checked]));
      const isElsewhere = news.some(({ what }) => what === 'elsewhere');
      const nowMs = performance.now();
      if (isElsewhere) elsewhereAtMs = nowMs;
      readAtMs = nowMs + (isElsewhere ? readElsewhereEveryMs : readEveryMs);
      for (const each of news) handleNews(each);
    },
  });

  const handleNews = ({ claim, what, askedAtMs }: WaitingNews): void => {
    const waiter = waiters.get(claim);
    if (waiter === undefined) return;
    if (what === 'taken over') {
      // The row may be of an earlier request, which this request replaces.
      const isOlder = waiter.isStored && (waiter.askedAtMs ?? 0) <= (askedAtMs ?? 0);
      if (isOlder) endWithoutRow(waiter, takenOver());
      else enterAgain(waiter);
    } else if (askedAtMs !== null && askedAtMs === waiter.askedAtMs) endWithoutRow(waiter, waitEnded());
    else if (what === 'removed' || waiter.state !== 'in line') return;
    else if (rowChecks.delete(waiter)) {
      waiter.isStored = what !== 'gone';
      events.onMayFit(waiter);
    } else if (what === 'first' && lines.get(lineOf(waiter))?.[0] === waiter) events.onTurn(waiter);
    else if (what === 'gone') enterAgain(waiter);
  };

  /** Ends a wait whose row another request has taken over or ended. The row is kept for a while, so that no older request replaces it. */
  const endWithoutRow = (waiter: Waiter, error: ApiError): void => {
    waiter.isStored = false;
    waiter.mayHaveRow = false;
    events.onEnded(waiter, error);
  };

  /** Stores a claim that has no row of this process any more; the statement finds which of several requests for it came last. */
  const enterAgain = (waiter: Waiter): void => {
    if (waiter.state === 'under way') return; // its row is checked when it is written
    waiter.isStored = false;
    if (waiter.wait.line !== undefined) {
      events.onReentering(waiter);
      leave(waiter);
      waiter.state = 'entering';
    }
    rows.enter(waiter);
    if (waiter.wait.line === undefined) events.onDoubtful(waiter);
  };

  return {
    enter: (waiter, { number, isFirst }) => {
      const line = lines.get(lineOf(waiter)) ?? [];
      lines.set(lineOf(waiter), line);
      const later = line.findIndex((other) => other.number > number);
      line.splice(later === -1 ? line.length : later, 0, waiter);
      if (isFirst && line[0] === waiter) events.onTurn(waiter);
      else events.onDoubtful(waiter);
    },
    leave,
    checkTurn: (waiter) => {
      if (waiter.wait.line === undefined) rowChecks.add(waiter);
      void readNews();
    },
    dropTurnCheck: (waiter) => {
      rowChecks.delete(waiter);
    },
    firsts: () => [...lines.values()].flatMap(([first]) => first ?? []),
    readNews: () => {
      if (lines.size > 0) void readNews();
    },
    readNewsIfDue: () => {
      if (performance.now() >= readAtMs) void readNews();
    },
    keepRows: async () => {
      const storedWaiters = [...waiters.values()]
        .filter(({ isStored }) => isStored)
        .sort((a, b) => a.number - b.number);
      const stored = await repeatLostRaces(() => noteAlive(database, process));
      if (stored >= storedWaiters.length) return;
      const keys = storedWaiters.flatMap(({ key, state }) => (state === 'under way' ? [] : [key]));
      for (const { claim, endedAskedAtMs } of await repeatLostRaces(() => lostRows(database, process, keys))) {
        const waiter = waiters.get(claim);
        if (!waiter?.isStored) continue;
        // The news that the wait was ended may not have arrived yet. If the claim were stored again now, its row would wait again.
        if (endedAskedAtMs !== null && endedAskedAtMs === waiter.askedAtMs) endWithoutRow(waiter, waitEnded());
        else enterAgain(waiter);
      }
    },
  };
}
