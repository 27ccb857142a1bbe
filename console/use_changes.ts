import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { FollowedChange } from '../src/client/changes.ts';
import { follow } from './following.ts';
import type { Loaded } from './use_loaded.ts';

/** How long changes are collected before a view reads again, in milliseconds. */
const usualPauseMs = 300;

/**
 * Calls back soon after a change of one of these providers, or of any.
 *
 * @param uuids undefined while they are not known: then any change may be one of theirs
 * @param pauseMs how long changes are collected: longer where reading again is much work
 */
export function useChanges(
  uuids: ReadonlySet<string> | 'any' | undefined,
  changed: () => void,
  pauseMs = usualPauseMs,
): void {
  // A view has another set after each answer. Following continues meanwhile, so that no change is missed.
  const latest = useRef(uuids);
  latest.current = uuids;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unfollow = follow((change) => {
      const among = latest.current ?? 'any';
      if (among !== 'any' && !concerns(change, among)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        changed();
      }, pauseMs);
    });
    return () => {
      unfollow();
      clearTimeout(timer);
    };
  }, [changed, pauseMs]);
}

/** Whether these providers have changed, or a new provider may belong to them: a child, or one that shares with them. */
const concerns = (change: FollowedChange, uuids: ReadonlySet<string>): boolean =>
  'everything' in change ||
  ('resource_provider' in change &&
    (uuids.has(change.resource_provider) ||
      ('parts' in change &&
        change.parts.some((part) => part === 'provider' || part === 'aggregates' || part === 'traits'))));

/** Loads several parts of a view again soon after any change. */
export function useAnyChange(parts: readonly Loaded<unknown>[], pauseMs: number): void {
  // `again` of each part stays the same.
  const [again] = useState(() => parts.map((part) => part.again));
  useChanges(
    'any',
    useCallback(() => {
      for (const read of again) read();
    }, [again]),
    pauseMs,
  );
}
