import { useCallback, useEffect, useState } from 'preact/hooks';

/** What a view has of a request: the last value, and whether the last attempt failed. */
export type Loaded<T> = {
  readonly value: T | undefined;
  readonly error: unknown;
  /** Whether a request is under way. The value of the one before it is still shown. */
  readonly isLoading: boolean;
  readonly again: () => void;
};

type State<T> = {
  readonly key: string;
  readonly value: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
};

/**
 * Loads a value for a key, and again for each new key or when `again` is called. The value of another key is not shown. A component
 * that goes away ends the request.
 *
 * @param key undefined: nothing is loaded
 */
export function useLoaded<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<State<T>>({ key: '', value: undefined, error: undefined, isLoading: true });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => {
    if (key === undefined) return;
    const gone = new AbortController();
    setState((before) =>
      before.key === key
        ? { ...before, isLoading: true }
        : { key, value: undefined, error: undefined, isLoading: true },
    );
    load(gone.signal).then(
      (value) => {
        if (!gone.signal.aborted) setState({ key, value, error: undefined, isLoading: false });
      },
      (error: unknown) => {
        if (!gone.signal.aborted) setState((before) => ({ ...before, key, error, isLoading: false }));
      },
    );
    return () => gone.abort(new DOMException('The view was left.', 'AbortError'));
  }, [key, round]);
  const isOfKey = state.key === key;
  return {
    value: isOfKey ? state.value : undefined,
    error: isOfKey ? state.error : undefined,
    isLoading: key !== undefined && (!isOfKey || state.isLoading),
    again,
  };
}
