import { withoutConsumer } from './consumer_generations.ts';
import { type ConsumerState, type State, withConsumer } from './state.ts';

/*
 * Claims that expire. The service may remove a consumer at any moment after its term has expired, so the
 * removal is a step of the history without a request. All times are milliseconds since 1970.
 */

/** A term, which ends at one moment between these two. */
export type Term = { readonly earliest: number; readonly latest: number };

/** When a request had its effect: at one moment between `since` and `until`. */
export type EffectTime = {
  /** When it was sent. */
  readonly since: number;
  /** All that had its effect before was answered by then, or later. */
  readonly until: number;
  /** When it was answered; infinite without an answer. */
  readonly completed: number;
};

/** The effect time of a request while clocks jump: any time. */
export const anyTime: EffectTime = {
  since: Number.NEGATIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
  completed: Number.POSITIVE_INFINITY,
};

/** Answers show an end in whole milliseconds, and the clock of a history is as exact. */
const roundingMs = 2;

/** The term of a claim or a renewal with this effect time. */
export const termFrom = ({ since, completed }: EffectTime, seconds: number): Term => ({
  earliest: since + seconds * 1000 - roundingMs,
  latest: completed + seconds * 1000 + roundingMs,
});

/** From this microversion on consumers have terms, and those whose term has ended are not found. */
export const terms = 2006;

/** Whether a request for a consumer may answer that there is none. */
export const isNotFound = (consumer: ConsumerState | undefined, microversion: number, { until }: EffectTime): boolean =>
  consumer === undefined || (microversion >= terms && consumer.term !== undefined && consumer.term.earliest <= until);

/** Whether a request for a consumer that is there may find it. */
export const isFound = ({ term }: ConsumerState, microversion: number, { since }: EffectTime): boolean =>
  microversion < terms || term === undefined || term.latest > since;

/** The state in which the end of a consumer's term is what an answer shows. Undefined if it cannot be that. */
export function withShownEnd(state: State, uuid: string, answer: unknown): State | undefined {
  const consumer = state.consumers[uuid];
  const shown = (answer as { readonly expires_at?: unknown } | undefined)?.expires_at;
  if (consumer?.term === undefined) return shown === null ? state : undefined;
  const { earliest, latest } = consumer.term;
  const end = typeof shown === 'string' ? Date.parse(shown) : Number.NaN;
  if (!(end >= earliest - roundingMs && end <= latest + roundingMs)) return undefined;
  return withConsumer(state, uuid, { ...consumer, term: { earliest: end - roundingMs, latest: end + roundingMs } });
}

/**
 * The states after the removals that may have happened before a request had its effect, those with few removals first.
 *
 * @param patienceMs when this time has passed since the end, the removal must have happened
 */
export function afterRemovals(state: State, effectTime: EffectTime, patienceMs: number): readonly State[] {
  let states: readonly State[] = [state];
  for (const [uuid, { term }] of Object.entries(state.consumers)) {
    if (term === undefined || term.earliest > effectTime.until) continue;
    const removed = states.map((each) => withoutConsumer(each, uuid));
    states = term.latest + patienceMs < effectTime.since ? removed : [...states, ...removed];
  }
  return states;
}
