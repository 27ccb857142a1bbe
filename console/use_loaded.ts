import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { isLasting } from './lasting.ts';
import { useStore } from './store.ts';
import { visibility } from './visibility.ts';

/** The pause after an error, and for data that seldom changes or takes much work to read, in milliseconds. */
export const longPauseMs = 15_000;

/** The result of a request for a view: the last value, and the error if the last attempt failed. */
export type Loaded<T> = {
  readonly value: T | undefined;
  readonly error: unknown;
  /** Whether a request is running. The previous value is still shown. */
  readonly isLoading: boolean;
  readonly again: () => void;
  /** When the value was requested. */
  readonly at: Date | undefined;
};

type State<T> = {
  readonly key: string;
  readonly value: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly at: Date | undefined;
};

/**
 * Loads a value for a key, and again for each new key or call of `again`, and some time after an error that may pass. The value of an older
 * key is not shown. When the component is removed, its request is aborted.
 *
 * @param key undefined: nothing is loaded
 */
export function useLoaded<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<State<T>>({
    key: '',
    value: undefined,
    error: undefined,
    isLoading: true,
    at: undefined,
  });
  const newestLoad = useRef(load);
  newestLoad.current = load;
  const start = useRef<(() => void) | undefined>(undefined);
  const again = useCallback(() => start.current?.(), []);
  useEffect(() => {
    if (key === undefined) return;
    const gone = new AbortController();
    let isRunning = false;
    let isDueAgain = false;
    const ended = (next: (before: State<T>) => State<T>) => {
      if (gone.signal.aborted) return;
      isRunning = false;
      setState(next);
      if (isDueAgain) run();
    };
    const run = () => {
      // If each change aborted the request, steady changes would leave a slow one without any answer.
      isDueAgain = isRunning;
      if (isRunning) return;
      isRunning = true;
      setState((before) =>
        before.key === key
          ? { ...before, isLoading: true }
          : { key, value: undefined, error: undefined, isLoading: true, at: undefined },
      );
      const at = new Date();
      newestLoad.current(gone.signal).then(
        (value) => ended(() => ({ key, value, error: undefined, isLoading: false, at })),
        (error: unknown) => ended((before) => ({ ...before, key, error, isLoading: false })),
      );
    };
    start.current = run;
    run();
    return () => {
      start.current = undefined;
      gone.abort(new DOMException('The view was left.', 'AbortError'));
    };
  }, [key]);
  const isOfKey = state.key === key;
  const error = isOfKey ? state.error : undefined;
  const isLoading = key !== undefined && (!isOfKey || state.isLoading);
  // Without a change nothing else would read it again.
  const isVisible = useStore(visibility) === 'visible';
  const isRetryDue = isVisible && error !== undefined && !isLoading && !isLasting(error);
  useEffect(() => {
    if (!isRetryDue) return;
    const timer = setTimeout(again, longPauseMs);
    return () => clearTimeout(timer);
  }, [isRetryDue, again]);
  return {
    value: isOfKey ? state.value : undefined,
    error,
    isLoading,
    again,
    at: isOfKey ? state.at : undefined,
  };
}
