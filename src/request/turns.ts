import { type ApiError, badRequest, tryLater } from './errors.ts';

/** Work in small pieces: it can stop at each `yield`, so that other requests are served meanwhile. */
export type Pieces<Result> = Generator<undefined, Result>;

/** How long a turn of a request is, in milliseconds: while short requests are served as well, and otherwise. */
const [shortTurnMs, longTurnMs] = [1, 10];
/** A turn may take this part of the time that everything else took since the turn before. */
const turnShare = 1 / 4;
/** Turns stay short for this long after the last short request. */
const shortTurnsForMs = 25;
/** The longest pause between two turns, in milliseconds. */
const longestPauseMs = 5;

/**
 * How many milliseconds a turn waits. With many short requests an iteration of the event loop takes a few milliseconds: with a turn in
 * each, long requests would have most of the time. Answers come in batches, so the pause grows immediately, and shrinks by one millisecond
 * a turn.
 *
 * @param beforeMs how long the turn before has waited
 * @param shortRequests how many short requests were answered since then
 */
export const pauseMsAfter = (beforeMs: number, shortRequests: number): number =>
  Math.min(longestPauseMs, Math.max(shortRequests, beforeMs - 1, 0));

/**
 * How long the next turns are, in milliseconds. A claim passes through some four iterations of the event loop until it is answered, and
 * waits for a turn in each of them; turns that are always short would make long answers slower while there is no other request.
 *
 * @param sinceShortMs the time since a short request was answered last
 * @param othersMs how long everything else took since the turn before
 */
export const turnMsBeside = (sinceShortMs: number, othersMs: number): number =>
  sinceShortMs > shortTurnsForMs ? longTurnMs : Math.min(longTurnMs, Math.max(shortTurnMs, othersMs * turnShare));

/** How many requests were answered within their first turn; and how many of these the latest turn has seen, and when. */
let shortRequests = 0;
let seen = { requests: 0, atMs: Number.NEGATIVE_INFINITY };

/** To be called where a request is answered that has not passed a turn. */
export const noteShortRequest = (): void => {
  shortRequests += 1;
};

/** The length of turns as it was measured last, and after how many milliseconds this measurement does not hold any more. */
let measuredTurnMs = longTurnMs;
const outdatedMs = 1_000;

/** How long a request may work without a result, in milliseconds of CPU time of all its turns together. */
export const mostWorkMs = 5_000;

/** Makes the error for a request that works too long without a result; the error names what the client can reduce. */
export type TooWide = () => ApiError;

/** The turns of one request at the process: all of its work that may take long is done in them. */
export type Turns = {
  /** Begins a turn. Call it when the work begins, and when it continues after an `await`. */
  begin(): void;
  /**
   * Whether the turn is over, so that other requests should be served. Call it in each round of a loop.
   *
   * @param rounds what was done since the last call, in rounds of a loop of some 100 ns each; the clock is read after a thousand of them
   */
  isOver(rounds?: number): boolean;
  /** Ends a turn without a pause. Call it when the work is done, and before an `await`. */
  end(): void;
  /**
   * Ends a turn, lets other requests have their turns, and begins the next one.
   *
   * @throws ApiError 400 if there was no result for `mostWorkMs`, or if the client has disconnected; then the error is not sent
   */
  pass(tooWide?: TooWide): Promise<void>;
  /** Whether other requests have had a turn before this request was done. */
  hasPassed(): boolean;
  /** Lets other requests have their turns. Call it between two turns, such as when a client reads the next part of its answer. */
  rest(): Promise<void>;
  /** Notes a result of the work, such as a candidate: the time without a result restarts. */
  noteResult(): void;
};

/** After how many rounds the clock is read, some 0.1 ms. Work that may take longer passes this number, so that the clock is read now. */
export const roundsPerClockRead = 1_000;

/**
 * How long turns took in this iteration of the event loop, in milliseconds, over all requests. Of many requests in the same iteration one
 * has a whole turn: the turns of the other requests are over at their first check.
 */
let takenMs = 0;
let isCounting = false;

/**
 * How long all turns took in this cycle, in milliseconds, and when the cycle began. A cycle begins with a turn that a request waited for,
 * or where a request begins to wait and no other does.
 */
let turnsMs = 0;
let cycleBeganMs = 0;

/** Shorter turns do not count: most requests have one such turn, and resetting the count would take as long as the turn. */
const countedMs = shortTurnMs / 2;

function noteTurn(tookMs: number): void {
  turnsMs += tookMs;
  if (tookMs < countedMs) return;
  takenMs += tookMs;
  if (isCounting) return;
  isCounting = true;
  setImmediate(() => {
    takenMs = 0;
    isCounting = false;
  });
}

/** How long the next turn waits. */
let pauseMs = 0;

/** The requests that wait for their next turn. One of them has it in each iteration of the event loop: turns must not add up. */
const waiting: (() => void)[] = [];

const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length > 1) return;
    turnsMs = 0;
    cycleBeganMs = performance.now();
    scheduleNextTurn();
  });

function scheduleNextTurn(): void {
  if (pauseMs === 0) setImmediate(beginNextTurn);
  else setTimeout(beginNextTurn, pauseMs);
}

function beginNextTurn(): void {
  const nowMs = performance.now();
  pauseMs = pauseMsAfter(pauseMs, shortRequests - seen.requests);
  if (shortRequests !== seen.requests) seen = { requests: shortRequests, atMs: nowMs };
  measuredTurnMs = turnMsBeside(nowMs - seen.atMs, nowMs - cycleBeganMs - turnsMs);
  cycleBeganMs = nowMs;
  turnsMs = 0;
  takenMs = 0;
  waiting.shift()?.();
  if (waiting.length > 0) scheduleNextTurn();
}

/** The turns of a request. @param gone returns a signal that is aborted when the client disconnects; the first `pass` calls it */
export function openTurns(gone?: () => AbortSignal): Turns {
  let beganMs = performance.now();
  let turnMs = longTurnMs;
  /** Read where a turn follows another one only: it takes a microsecond. */
  let beganCpuMs: number | undefined;
  let workedMs = 0;
  let rounds = 0;
  let isOver = false;
  let hasResult = false;
  let hasPassed = false;
  let signal: AbortSignal | undefined;
  const begin = (): void => {
    beganMs = performance.now();
    turnMs = beganMs - cycleBeganMs > outdatedMs ? longTurnMs : measuredTurnMs;
    beganCpuMs = undefined;
    isOver = false;
  };
  const end = (): void => {
    const tookMs = performance.now() - beganMs;
    noteTurn(tookMs);
    const workMs = beganCpuMs === undefined ? Math.min(tookMs, turnMs) : cpuMs() - beganCpuMs;
    workedMs = hasResult ? 0 : workedMs + workMs;
    hasResult = false;
  };
  return {
    begin,
    end,
    isOver: (more = 1) => {
      if (isOver) return true;
      rounds += more;
      if (rounds < roundsPerClockRead) return false;
      rounds = 0;
      isOver = performance.now() - beganMs + takenMs >= turnMs;
      return isOver;
    },
    pass: async (tooWide = tooMuch) => {
      end();
      if (workedMs > mostWorkMs) throw tooWide();
      hasPassed = true;
      signal ??= gone?.();
      await nextTurn();
      if (signal?.aborted) throw badRequest('The client has left.');
      begin();
      beganCpuMs = cpuMs();
    },
    hasPassed: () => hasPassed,
    rest: nextTurn,
    noteResult: () => {
      hasResult = true;
    },
  };
}

/** The CPU time of this process so far, in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const tooMuch: TooWide = () =>
  badRequest(
    `The request was stopped after ${mostWorkMs / 1000} s of work without a result. Ask for less in one request.`,
  );

/**
 * Does work in pieces.
 *
 * @returns the result itself where the work was done before its first turn was over: then no other code has run meanwhile
 * @throws what `pass` throws
 */
export function inPieces<Result>(work: Pieces<Result>, turns: Turns, tooWide?: TooWide): Result | Promise<Result> {
  turns.begin();
  return goOn(work, turns, tooWide);
}

/** Continues work in a turn that has begun. */
function goOn<Result>(work: Pieces<Result>, turns: Turns, tooWide?: TooWide): Result | Promise<Result> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) {
      turns.end();
      return step.value;
    }
    if (turns.isOver(roundsPerClockRead)) return turns.pass(tooWide).then(() => goOn(work, turns, tooWide));
  }
}

/** Holds the present snapshot of what the work reads, until `end` is called; calls `giveUp` if the snapshot cannot be held any longer. */
export type Hold = (giveUp: () => void) => { end(): void };

/** The error where too much changed for a snapshot to be held. */
export const changedTooMuch = (): ApiError =>
  tryLater(
    'Too much of what the answer shows has changed before it was complete. Try again, or ask for less in one request.',
  );

/** Does work in pieces, all of them about one snapshot: it is held from the first pause on. @throws what `pass` throws; ApiError 503 */
export async function inPiecesOfOneSnapshot<Result>(
  work: Pieces<Result>,
  hold: Hold,
  turns: Turns,
  tooWide?: TooWide,
): Promise<Result> {
  let snapshot: ReturnType<Hold> | undefined;
  let isLost = false;
  turns.begin();
  try {
    for (let step = work.next(); ; step = work.next()) {
      if (step.done) {
        turns.end();
        return step.value;
      }
      if (!turns.isOver(roundsPerClockRead)) continue;
      snapshot ??= hold(() => {
        isLost = true;
      });
      await turns.pass(tooWide);
      if (isLost) throw changedTooMuch();
    }
  } finally {
    snapshot?.end();
  }
}

/** Does work in one piece: for what takes a few milliseconds, or must not be interrupted. */
export function atOnce<Result>(work: Pieces<Result>): Result {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value;
}
