import { useEffect } from 'preact/hooks';
import { ApiError, VersionError } from '../src/client/errors.ts';
import { useStore } from './store.ts';
import type { Loaded } from './use_loaded.ts';
import { visibility } from './visibility.ts';

/** The time between an answer and the next request, in milliseconds. */
const pauseMs = 1_500;

/** Loads again and again while the page is visible, for what the changes of the service do not tell. */
export function useRenewal({ isLoading, error, again }: Loaded<unknown>): void {
  const isVisible = useStore(visibility) === 'visible';
  const isDue = isVisible && !isLoading && !isLasting(error);
  useEffect(() => {
    if (!isDue) return;
    const timer = setTimeout(again, pauseMs);
    return () => clearTimeout(timer);
  }, [isDue, again]);
}

/** Whether the same request would be refused again. */
const isLasting = (error: unknown): boolean =>
  error instanceof VersionError || (error instanceof ApiError && [400, 403].includes(error.status));
