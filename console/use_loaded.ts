import { useCallback, useEffect, useState } from 'preact/hooks';

/** The result of a request for a view: the last value, and the error if the last attempt failed. */
export type Loaded<T> = {
  readonly value: T | undefined;
  readonly error: unknown;
  /** Whether a request is running. The previous value is still shown. */
  readonly isLoading: boolean;
  readonly again: () => void;
  /** When the value was asked for. */
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
 * Loads a value for a key, and again for each new key or call of `again`. The value of an older key is not shown. When
 * the component is removed, its request is aborted.
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
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => {
    if (key === undefined) return;
    const gone = new AbortController();
    setState((before) =>
      before.key === key
        ? { ...before, isLoading: true }
        : { key, value: undefined, error: undefined, isLoading: true, at: undefined },
    );
    const at = new Date();
    load(gone.signal).then(
      (value) => {
        if (!gone.signal.aborted) setState({ key, value, error: undefined, isLoading: false, at });
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
    at: isOfKey ? state.at : undefined,
  };
}
