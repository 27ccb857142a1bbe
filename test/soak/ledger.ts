import { versionText } from '../../src/placement/versions.ts';
import type { Finding } from '../histories/check.ts';
import type { Outcome, Request } from '../histories/connection.ts';
import type { Reply } from '../histories/history.ts';
import type { LeftOut } from './faults.ts';
import type { Logs } from './logs.ts';

/** What a soak saw. */
export type Ledger = {
  readonly operations: () => number;
  /** `followed` are those whose changes were followed to their end, so that a missing report is noticed. */
  readonly histories: { checked: number; undecided: number; followed: number };
  readonly findings: Finding[];
  readonly faults: Map<string, number>;
  /** How long after the ends of their terms consumers were seen to be removed. */
  readonly removedAfterMs: number[];
  /** Faults that failed, and processes that did not serve when all was over. */
  readonly broken: string[];
  /** Notes the outcome of a request. */
  watch(outcome: Outcome, request: Request, reply?: Reply): void;
  /** All that is wrong: any of it fails the soak. */
  complaints(): readonly string[];
  /** The faults that cannot happen here. */
  readonly leftOut: LeftOut[];
  readonly logs: Logs;
  /** The lines of the report. */
  report(): readonly string[];
};

/** Reasons for which a process may end by itself: the soak takes away so many of these resources that it cannot continue. */
const knownReasons: readonly (readonly [name: string, sign: RegExp])[] = [
  ['memory', /heap out of memory|heap limit/i],
  ['disk space', /no space left|ENOSPC/i],
];

/** A refusal is mostly right, so a service that refuses all writes would pass. At least this share of them must be done. */
const leastDone = 1 / 20;

/** @param endings the last output of the processes that ended by themselves so far */
export function openLedger(logs: Logs, endings: () => readonly string[]): Ledger {
  const unexplained = () => endings().filter((last) => !knownReasons.some(([, sign]) => sign.test(last)));
  const leftOut: LeftOut[] = [];
  const statuses = new Map<Outcome, number>();
  const faults = new Map<string, number>();
  const findings: Finding[] = [];
  /** Answers with a 5xx other than 503. */
  const failed: string[] = [];
  const broken: string[] = [];
  const removedAfterMs: number[] = [];
  const histories = { checked: 0, undecided: 0, followed: 0 };
  const writes = { answered: 0, done: 0 };
  const refusals = () =>
    writes.done < leastDone * writes.answered ? [`only ${writes.done} of ${writes.answered} writes were done`] : [];
  let served = performance.now();
  let longestMs = 0;
  const operations = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
  const countOf = (kind: Finding['kind']) => findings.filter((each) => each.kind === kind).length;
  /** A 500 whose answer was cut is in the logs only; that of a process which was killed before it logged it is with its client only. */
  const allFailed = () => (logs.failed.length > failed.length ? logs.failed : failed);
  return {
    operations,
    histories,
    findings,
    faults,
    broken,
    removedAfterMs,
    complaints: () => [
      ...findings.map(({ kind, text }) => `${kind}: ${text}`),
      ...allFailed(),
      ...broken,
      ...unexplained(),
      ...logs.leaks,
      ...refusals(),
    ],
    leftOut,
    logs,
    watch: (outcome, { method, path, microversion }, reply) => {
      statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
      if (outcome === 'cut') return;
      if (method !== 'GET') {
        writes.answered += 1;
        if (outcome < 300) writes.done += 1;
      }
      if (outcome >= 500 && outcome !== 503)
        failed.push(`${method} ${path} at ${versionText(microversion)}: ${outcome} ${JSON.stringify(reply?.body)}`);
      // Refusals, and the list of versions, may need no database: only what was done shows that there is service.
      if (outcome >= 300 || path === '/') return;
      const now = performance.now();
      longestMs = Math.max(longestMs, now - served);
      served = now;
    },
    report: () => [
      `operations: ${operations()} (${[...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')})`,
      `writes: ${writes.done} of ${writes.answered} done`,
      `histories: ${histories.checked} checked, ${histories.undecided} undecided; changes followed to the end of ${histories.followed}`,
      `faults: ${[...faults.values()].reduce((sum, count) => sum + count, 0)} of ${faults.size} kinds`,
      ...[...faults].map(([name, count]) => `  ${count} ${name}`),
      ...leftOut.map(({ name, reason }) => `  left out: ${name}: ${reason}`),
      `lost: ${countOf('lost')}, over-allocated: ${countOf('over-allocated')}, stale: ${countOf('stale')}, not reported: ${countOf('not reported')}`,
      `consumers removed after their terms: ${removedAfterMs.length}, the last of them after ${Math.max(0, ...removedAfterMs)} ms`,
      `500s: ${allFailed().length}`,
      ...allFailed()
        .slice(0, 10)
        .map((text) => `  ${text}`),
      ...logs.unexpected.slice(0, 10).map((line) => `  ${line}`),
      `processes that ended by themselves: ${[
        ...knownReasons.map(
          ([name, sign]) => `${endings().filter((last) => sign.test(last)).length} for lack of ${name}`,
        ),
        `${unexplained().length} for no known reason`,
      ].join(', ')}`,
      ...unexplained().slice(0, 10),
      `secrets in the logs: ${logs.leaks.length} (in ${logs.length} characters)`,
      ...logs.leaks.slice(0, 10).map((line) => `  ${line}`),
      `longest time without service: ${(longestMs / 1000).toFixed(1)} s`,
      ...broken,
      ...findings.map(({ kind, text }) => `${kind}: ${text}`),
    ],
  };
}
