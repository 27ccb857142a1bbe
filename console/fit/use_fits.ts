import { useCallback, useMemo, useState } from 'preact/hooks';
import { placement } from '../session.ts';
import { useChanges } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { type Fits, fitsOf } from './fits.ts';
import { candidateQueryOf, type QueryFields, searchOf } from './query_fields.ts';

/** How many trees the service tells at most of those in which it fits, and of those that come nearest. */
export const mostTold = { fitting: 10_000, nearest: 1_000 };
/** How long changes are collected before it is asked again, in milliseconds: each time the whole fleet is searched twice. */
const pauseMs = 3_000;

/** Where a query fits in the whole fleet: asked again after changes. */
export type AskedFits = {
  /** Undefined until the first answer. */
  readonly fits: Fits | undefined;
  /** When it was asked. */
  readonly at: Date | undefined;
  /** The last attempt failed, to count or to explain. */
  readonly error: unknown;
};

/** Asks where a query fits. A form that asks for nothing is not asked about. */
export function useFits(fields: QueryFields): AskedFits {
  const query = candidateQueryOf(fields);
  const key = query === undefined ? undefined : searchOf({ ...fields, tree: '', order: '' }).toString();
  const { order: _, ...asked } = query ?? {};
  const count = useLoaded(key, (signal) =>
    placement.candidateQuestions.count({ ...asked, top: mostTold.fitting }, { signal }),
  );
  const explained = useLoaded(key, (signal) =>
    placement.candidateQuestions.explain({ ...asked, nearest: mostTold.nearest }, { signal }),
  );
  const [parts] = useState(() => [count.again, explained.again]);
  useChanges(
    'any',
    useCallback(() => {
      for (const again of parts) again();
    }, [parts]),
    pauseMs,
  );
  const fits = useMemo(
    () => (count.value === undefined ? undefined : fitsOf(count.value, explained.value?.nearest ?? [])),
    [count.value, explained.value],
  );
  return { fits, at: count.at, error: count.error ?? explained.error };
}
