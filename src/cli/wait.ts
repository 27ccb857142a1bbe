import { InvalidArgumentError, Option } from 'commander';
import { ApiError, type Placement, type WaitingClaim } from '../client/index.ts';
import { longestTimerMs } from '../client/repeat.ts';
import { pause } from '../client/send.ts';
import { printError } from '../text/print.ts';
import { durationText, readDuration } from './duration.ts';
import { CommandFailure } from './exit_codes.ts';

/** The option that lets a claim wait, in seconds. */
export const waitOption = (): Option =>
  timeOption(
    'where it fits nowhere, wait for so long, such as 10m; at most [placement] max_wait of the service, by default 1h; from 2.8',
  );

/** The option `--wait`, in seconds. */
export const timeOption = (help: string): Option => new Option('--wait <time>', help).argParser(readWait);

/** The longest wait in days: a longer one would have no end, since no timer of Node.js takes it. */
const mostDays = Math.floor(longestTimerMs / 86_400_000);

/** @throws InvalidArgumentError, which commander prints with the option */
export function readWait(text: string): number {
  const seconds = readDuration(text);
  if (seconds <= mostDays * 86_400) return seconds;
  throw new InvalidArgumentError(`A command waits for ${mostDays}d at most.`);
}

/** The refusal of a wait that is longer than the service allows, in the words of the command; undefined for any other error. */
export function asTooLong(error: unknown): Error | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const [, most] = /^Prefer: wait is a number of seconds from 1 to (\d+)/.exec(error.detail) ?? [];
  if (most === undefined) return undefined;
  return new CommandFailure(
    'wrongInput',
    `--wait: this service lets a claim wait for at most ${durationText(Number(most))} ([placement] max_wait).`,
    { cause: error },
  );
}

/** When it is first read what a claim waits for, and how often after that, in milliseconds. */
const firstReportMs = 1_000;
const reportEveryMs = 3_000;

/** The claim of a consumer in a project that waits. */
type Waiter = { readonly placement: Placement; readonly consumer: string; readonly project: string };

/**
 * Runs a claim that may wait, and prints on standard error what the claim waits for, once and after each change. Ctrl-C ends the wait; a
 * second Ctrl-C ends the process immediately.
 *
 * @param claim must end with its signal
 * @returns undefined if the user has ended the wait
 */
export async function claimWithReports<Result>(
  waiter: Waiter,
  claim: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | undefined> {
  const [interrupted, ended] = [new AbortController(), new AbortController()];
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const reporting = reportWait(waiter, ended.signal);
  try {
    return await claim(interrupted.signal);
  } catch (error) {
    if (error !== interrupted.signal.reason) throw error;
    return undefined;
  } finally {
    process.off('SIGINT', interrupt);
    ended.abort();
    await reporting;
  }
}

/** Prints what a claim waits for, until the signal. */
async function reportWait(waiter: Waiter, signal: AbortSignal): Promise<void> {
  let printed = '';
  try {
    for (let afterMs = firstReportMs; ; afterMs = reportEveryMs) {
      await pause(afterMs, signal);
      const text = await readWaitText(waiter, signal);
      if (text !== undefined && text !== printed) {
        printError(text);
        printed = text;
      }
    }
  } catch (error) {
    if (error !== signal.reason) throw error;
  }
}

/** What a claim waits for; undefined if it does not wait, is not judged yet, or if that cannot be read: the claim itself continues. */
async function readWaitText(
  { placement, consumer, project }: Waiter,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    for await (const claim of placement.waiting.list({ project_id: project }, { signal, deadlineMs: reportEveryMs })) {
      if (claim.consumers.includes(consumer)) return claim.condition === '' ? undefined : waitText(claim);
    }
  } catch {
    signal.throwIfAborted();
  }
  return undefined;
}

const waitsFor = { room: 'room', limit: 'a limit of its project', line: 'the claims before it' };

function waitText({ line, place, waits_for, condition, until }: WaitingClaim): string {
  const where = line === null ? `place ${place}` : `place ${place} of line ${line}`;
  return `It waits for ${waitsFor[waits_for]}, at ${where}, until ${until}: ${condition}`;
}
