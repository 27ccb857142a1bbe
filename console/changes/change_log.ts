import type { FollowedChange } from '../../src/client/changes.ts';
import { follow } from '../following.ts';
import { onReplaced } from '../mirror.ts';
import { createStore } from '../store.ts';
import { differencesOf } from './differences.ts';

/** A change that was told while this page was open. */
export type Logged = {
  readonly number: number;
  readonly at: Date;
  readonly change: FollowedChange;
  /** What was and is; undefined until it is read, or where it cannot be read. */
  readonly differences: readonly string[] | undefined;
};

/** How long and how many changes are kept. */
const keptMs = 600_000;
const mostKept = 1_000;
/** How long changes are collected before the views show them, in milliseconds. */
const collectMs = 250;

/** The changes of the last ten minutes, the newest first, from the moment when this page was opened. */
export const changeLog = createStore<readonly Logged[]>([]);

/** When the log began. */
export const logBegan = new Date();

let isOpen = false;
let count = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const news: Logged[] = [];
const found = new Map<string, readonly string[]>();

/** Begins to keep what changes; later calls do nothing. What was and is is known once all providers have been read. */
export function openChangeLog(): void {
  if (isOpen) return;
  isOpen = true;
  follow((change) => {
    if ('everything' in change) return;
    news.unshift({ number: ++count, at: new Date(), change, differences: undefined });
    if (news.length > mostKept) news.pop();
    showSoon();
  });
  onReplaced((before, after) => {
    found.set(after.uuid, before === undefined ? ['new'] : differencesOf(before, after));
    showSoon();
  });
}

function showSoon(): void {
  if (timer === undefined) timer = setTimeout(show, collectMs);
}

/** Puts what was found to the newest change of its provider: several changes may have been read at once. */
function show(): void {
  timer = undefined;
  const oldest = Date.now() - keptMs;
  const all = [...news.splice(0), ...changeLog.get()].slice(0, mostKept).filter(({ at }) => at.getTime() > oldest);
  changeLog.set(
    all.map((logged) => {
      const { change, differences } = logged;
      if (differences !== undefined || !('resource_provider' in change)) return logged;
      const those = found.get(change.resource_provider);
      if (those === undefined) return logged;
      found.delete(change.resource_provider);
      return { ...logged, differences: those };
    }),
  );
}
