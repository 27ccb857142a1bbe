import { useEffect } from 'preact/hooks';
import { useStore } from './store.ts';
import type { Loaded } from './use_loaded.ts';
import { visibility } from './visibility.ts';

/** The usual time between an answer and the next request, in milliseconds. */
const usualPauseMs = 1_500;

/** Loads again and again while the page is visible, for what the changes of the service do not include. */
export function useRenewal({ isLoading, error, again }: Loaded<unknown>, pauseMs = usualPauseMs): void {
  const isVisible = useStore(visibility) === 'visible';
  // After an error it is loaded again anyway, if that may help.
  const isDue = isVisible && !isLoading && error === undefined;
  useEffect(() => {
    if (!isDue) return;
    const timer = setTimeout(again, pauseMs);
    return () => clearTimeout(timer);
  }, [isDue, again, pauseMs]);
}
