import { ApiError, ConnectionError } from './errors.ts';
import { optional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, pathOf } from './operation.ts';
import { pause } from './send.ts';

/** A part of a provider. */
export type ProviderPart = 'provider' | 'inventories' | 'traits' | 'aggregates' | 'usages';

/** What the client must read again. */
export type Change =
  /** Everything: the first change without a token, and later whenever the server no longer knows what changed. */
  | { readonly everything: true }
  | { readonly resource_provider: string; readonly parts: readonly ProviderPart[] }
  | { readonly resource_provider: string; readonly deleted: true }
  | { readonly traits: true }
  | { readonly resource_classes: true }
  /** A new or changed consumer; only where `parts` has consumers. */
  | { readonly consumer: string }
  /** A consumer that has nothing any more. */
  | { readonly consumer: string; readonly gone: true; readonly ended: 'released' | 'term' };

/** A change, and the token with which to continue after it. A program that stores the token can be stopped at any time. */
export type FollowedChange = Change & { readonly token: string };

/** How changes are followed. */
export type FollowOptions = {
  /** Where to begin: the token of an earlier change. Without it the first change is `everything`. */
  readonly since?: string | undefined;
  /**
   * Only these parts of providers, and consumers (from 2.9, while the history is on). Deleted providers and changes of names are always
   * reported. Default: all parts of providers.
   */
  readonly parts?: readonly (ProviderPart | 'consumers')[] | undefined;
  /** Only providers with an inventory of this class, and providers that may have had one; from 2.7. */
  readonly resource_class?: string | undefined;
  /** Only providers of the tree that this provider is in, and providers that may have been in it; from 2.7. */
  readonly in_tree?: string | undefined;
  /** How long the server waits for a change before it answers, in seconds, up to 60. Default: 30. */
  readonly waitSeconds?: number | undefined;
  /**
   * Called after each answer, once all its changes have been reported, also where there are none: what was read before is then up to
   * date. With it the first request does not wait for a change.
   */
  readonly onCurrent?: (() => void) | undefined;
  /**
   * Called each time that the server is unavailable, before the request is repeated. With `onCurrent` the next request does not wait for a
   * change, so that `onCurrent` tells at once when the server answers again.
   */
  readonly onUnavailable?: ((error: unknown) => void) | undefined;
  /** Stops following: the iteration then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Follows changes without end; from 2.5. Each change is reported at least once. While the server is unreachable, requests are retried.
 *
 * @throws ApiError where the server refuses the request, such as 403; VersionError; the reason of the signal
 */
export type ChangesCall = (options?: FollowOptions) => AsyncGenerator<FollowedChange, void>;

type ChangesAnswer = { readonly changes: readonly Change[]; readonly next: string };

const since = versionNumber('2.5');
const sinceNarrowed = versionNumber('2.7');
const sinceConsumers = versionNumber('2.9');

/** How long to wait before a retry, in milliseconds: a random time up to this, so that clients do not retry at the same time. */
const pauseMs = 5_000;

/** How much longer than its wait a request may take, in milliseconds. */
const marginMs = 30_000;

/** Makes the call that follows changes. */
export function changesCall(ask: Ask): ChangesCall {
  const read = (
    token: string | undefined,
    mayWait: boolean,
    { parts, resource_class, in_tree, waitSeconds = 30, signal }: FollowOptions,
  ) =>
    ask<ChangesAnswer>(
      {
        method: 'GET',
        path: pathOf('changes'),
        since,
        query: [
          ...optional('since', token),
          ...optional('parts', parts?.join(','), parts?.includes('consumers') ? sinceConsumers : undefined),
          ...optional('resource_class', resource_class, sinceNarrowed),
          ...optional('in_tree', in_tree, sinceNarrowed),
        ],
        ...(token === undefined || !mayWait ? {} : { headers: { Prefer: `wait=${waitSeconds}` } }),
      },
      { signal, deadlineMs: waitSeconds * 1000 + marginMs },
    );
  return async function* (options = {}) {
    let token = options.since;
    let mayWait = options.onCurrent === undefined;
    for (;;) {
      try {
        const { changes, next } = await read(token, mayWait, options);
        if (token === undefined) yield { everything: true, token: next };
        for (const [index, change] of changes.entries()) {
          // Only after the last of them all changes of the answer have been reported.
          yield { ...change, token: index === changes.length - 1 ? next : (token ?? next) };
        }
        token = next;
        mayWait = true;
        options.onCurrent?.();
      } catch (error) {
        if (error instanceof ApiError && error.status === 410) token = undefined;
        else if (!mayPass(error)) throw error;
        else options.onUnavailable?.(error);
        mayWait = options.onCurrent === undefined;
        await pause(Math.random() * pauseMs, options.signal);
      }
    }
  };
}

/** Whether the same request may succeed a little later: there was no answer, or the service is overloaded. */
export const mayPass = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && [429, 502, 503, 504].includes(error.status));
