import { useMemo } from 'preact/hooks';
import { placement } from '../session.ts';
import { useAnyChange } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { type Fits, fitsOf } from './fits.ts';
import { candidateQueryOf, type QueryFields, searchOf } from './query_fields.ts';

/** How many trees the service returns at most: trees in which the query fits, and the nearest others. */
export const mostReturned = { fitting: 10_000, nearest: 1_000 };
/** How long changes are collected before the fits are read again, in milliseconds: each time the whole fleet is searched twice. */
const pauseMs = 3_000;

/** Where a query fits in the whole fleet: read again after changes. */
export type LoadedFits = {
  /** Undefined until the first answer. */
  readonly fits: Fits | undefined;
  /** When the request was sent. */
  readonly at: Date | undefined;
  /** The last attempt failed, to count or to explain. */
  readonly error: unknown;
};

/** Reads where a query fits. For a form without any amount nothing is read. */
export function useFits(fields: QueryFields): LoadedFits {
  const query = candidateQueryOf(fields);
  const key = query === undefined ? undefined : searchOf({ ...fields, tree: '', order: '' }).toString();
  const { order: _, ...unordered } = query ?? {};
  const count = useLoaded(key, (signal) =>
    placement.candidateQuestions.count({ ...unordered, top: mostReturned.fitting }, { signal }),
  );
  const explained = useLoaded(key, (signal) =>
    placement.candidateQuestions.explain({ ...unordered, nearest: mostReturned.nearest }, { signal }),
  );
  useAnyChange([count, explained], pauseMs);
  const fits = useMemo(
    () => (count.value === undefined ? undefined : fitsOf(count.value, explained.value?.nearest ?? [])),
    [count.value, explained.value],
  );
  return { fits, at: count.at, error: count.error ?? explained.error };
}
