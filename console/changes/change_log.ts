import type { FollowedChange } from '../../src/client/changes.ts';
import { follow, following } from '../following.ts';
import { onReplaced } from '../mirror.ts';
import { createStore } from '../store.ts';
import { differencesOf } from './differences.ts';

/** A change that came while this page was open. */
export type Logged = {
  readonly number: number;
  readonly at: Date;
  readonly change: FollowedChange;
  /** What was and is; undefined until it is read, or where it cannot be read. It is written into this object, also if a view holds the list. */
  differences: readonly string[] | undefined;
};

/** For how long changes are listed, in milliseconds. */
const keptMs = 600_000;
/** How many changes are listed at most: 80 in each second. */
export const mostKept = 50_000;
/** How long changes are collected before the views show them, in milliseconds. */
const collectMs = 250;

/** What an older change of a provider shows if one reading found the differences of several changes. */
const withNewer: readonly string[] = ['shown with the newer change'];

/** The changes of the last ten minutes, the newest first, from the moment when this page began to follow them. */
export const changeLog = createStore<readonly Logged[]>([]);

/** Since when changes are logged; undefined before that. */
export const logBegan = createStore<Date | undefined>(undefined);

let isOpen = false;
let count = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const collected: Logged[] = [];
/** The newest change of each provider, to which its differences are added, and the changes whose differences are not read yet. */
const newest = new Map<string, Logged>();
const unread = new Map<string, Logged[]>();

/** Begins to keep what changes; later calls do nothing. What was and is is known once all providers have been read. */
export function openChangeLog(): void {
  if (isOpen) return;
  isOpen = true;
  const begin = () => {
    if (following.get().state === 'live' && logBegan.get() === undefined) logBegan.set(new Date());
  };
  following.subscribe(begin);
  begin();
  follow((change) => {
    if ('everything' in change) return;
    const logged: Logged = { number: ++count, at: new Date(), change, differences: undefined };
    collected.unshift(logged);
    if ('resource_provider' in change) {
      const uuid = change.resource_provider;
      newest.set(uuid, logged);
      if ('parts' in change) unread.set(uuid, [logged, ...(unread.get(uuid) ?? [])]);
      else unread.delete(uuid);
    }
    showSoon();
  });
  onReplaced((before, after) => {
    put(after.uuid, before === undefined ? ['new'] : differencesOf(before, after));
    showSoon();
  });
}

/** Puts what was found to the newest change of its provider: several changes may have been read at once. */
function put(uuid: string, found: readonly string[]): void {
  const [first, ...others] = unread.get(uuid) ?? [];
  unread.delete(uuid);
  for (const each of others) each.differences = withNewer;
  const logged = first ?? newest.get(uuid);
  if (logged !== undefined) logged.differences = [...(logged.differences ?? []), ...found];
}

function showSoon(): void {
  if (timer === undefined) timer = setTimeout(show, collectMs);
}

function show(): void {
  timer = undefined;
  const oldest = Date.now() - keptMs;
  const all = [...collected.splice(0), ...changeLog.get()];
  const end = all.findLastIndex(({ at }) => at.getTime() > oldest) + 1;
  const kept = all.slice(0, Math.min(end, mostKept));
  for (const logged of all.slice(kept.length)) forget(logged);
  changeLog.set(kept);
}

function forget(logged: Logged): void {
  if (!('resource_provider' in logged.change)) return;
  const uuid = logged.change.resource_provider;
  if (newest.get(uuid) !== logged) return;
  newest.delete(uuid);
  unread.delete(uuid);
}
