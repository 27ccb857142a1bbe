import { useEffect } from 'preact/hooks';
import { follow } from './following.ts';

/** How long changes are collected before a view reads again, in milliseconds. */
const collectMs = 300;

/**
 * Calls back soon after a change of one of these providers, or of any.
 *
 * @param uuids undefined while they are not known
 */
export function useChanges(uuids: ReadonlySet<string> | 'any' | undefined, changed: () => void): void {
  useEffect(() => {
    if (uuids === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unfollow = follow((change) => {
      const isOurs =
        uuids === 'any' ||
        'everything' in change ||
        ('resource_provider' in change && uuids.has(change.resource_provider));
      if (!isOurs) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        changed();
      }, collectMs);
    });
    return () => {
      unfollow();
      clearTimeout(timer);
    };
  }, [uuids, changed]);
}
