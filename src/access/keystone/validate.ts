import { hash } from 'node:crypto';
import type { KeystoneQueue } from './queue.ts';
import type { ServiceToken } from './service_token.ts';
import { KeystoneFault, readToken, type Token, type TokenCache } from './token.ts';
import { type KeystoneAnswer, KeystoneUnreachable, type Transport } from './transport.ts';

/** What the validation works with, and whether answers must have the catalog. */
export type ValidateOptions = {
  readonly transport: Transport;
  readonly queue: KeystoneQueue;
  readonly serviceToken: Pick<ServiceToken, 'get' | 'discard'>;
  readonly cache: TokenCache<Token>;
  /**
   * The tokens that Keystone does not know. They have a separate cache, so that invented tokens do not remove valid
   * ones.
   */
  readonly invalid: TokenCache<true>;
  readonly wantsCatalog: boolean;
};

/** How much time a request has left for Keystone, in milliseconds. The time in the queue does not count. */
export type TimeBudget = { leftMs: number };

/** The client of a request. `gone` returns a signal that is aborted when the client disconnects; it is called only before Keystone is. */
export type Caller = { readonly client: string; readonly gone: () => AbortSignal };

/**
 * Keystone's answer about a token; undefined if the token is not valid.
 *
 * @param allowExpired whether the token may have expired, because a service sends it together with its valid service token
 * @param budget how long the request may still wait for Keystone; it is reduced by the time that this took
 * @throws KeystoneFault, KeystoneUnreachable or KeystoneBusy where it is not known whether the token is valid; ValidationAbandoned where the
 *   caller has left
 */
export type ValidateToken = (
  token: string,
  allowExpired: boolean,
  caller: Caller,
  budget: TimeBudget,
) => Promise<Token | undefined>;

/** A validation that is in the queue or under way, and how many requests wait for its answer. */
type PendingValidation = {
  readonly answer: Promise<Token | undefined>;
  /** When the request to Keystone was sent, by `performance.now()`; undefined while the validation is in the queue. */
  readonly sentMs: () => number | undefined;
  /** Takes it out of the queue. */
  readonly abandon: () => void;
  waitingRequests: number;
};

/**
 * Keystone's answer about a token is cached under a hash of the token. Requests with the same token that is not in the
 * cache share one validation. Failures of Keystone are not cached.
 */
export function tokenValidation({
  transport,
  queue,
  serviceToken,
  cache,
  invalid,
  wantsCatalog,
}: ValidateOptions): ValidateToken {
  const pending = new Map<string, PendingValidation>();

  async function ask(token: string, allowExpired: boolean, deadlineMs: number): Promise<KeystoneAnswer> {
    const ownToken = await serviceToken.get(deadlineMs);
    const query = [...(wantsCatalog ? [] : ['nocatalog']), ...(allowExpired ? ['allow_expired=1'] : [])].join('&');
    // Without the last header Keystone refuses tokens with access rules.
    const headers = { 'x-auth-token': ownToken, 'x-subject-token': token, 'openstack-identity-access-rules': '1' };
    const path = query === '' ? '/auth/tokens' : `/auth/tokens?${query}`;
    const answer = await transport.send({ method: 'GET', path, headers }, deadlineMs);
    if (answer.status === 401) serviceToken.discard(ownToken);
    return answer;
  }

  async function validate(token: string, allowExpired: boolean, deadlineMs: number): Promise<Token | undefined> {
    let answer = await ask(token, allowExpired, deadlineMs);
    if (answer.status === 401) answer = await ask(token, allowExpired, deadlineMs);
    if (answer.status === 404) return undefined;
    if (answer.status === 200) return readToken(answer.text);
    throw new KeystoneFault(
      answer.status === 401
        ? 'Keystone refuses the token of the service user that it has just issued.'
        : `Keystone answered ${answer.status} when it was asked to validate a token.`,
    );
  }

  function begin(
    key: string,
    client: string,
    validateUntil: (deadlineMs: number) => Promise<Token | undefined>,
    leftMs: number,
  ): PendingValidation {
    let sentMs: number | undefined;
    const abandoned = new AbortController();
    const send = (): Promise<Token | undefined> => {
      sentMs = performance.now();
      return validateUntil(sentMs + leftMs);
    };
    const validation: PendingValidation = {
      answer: queue.run(send, { client, gone: abandoned.signal }).finally(() => {
        if (pending.get(key) === validation) pending.delete(key);
      }),
      sentMs: () => sentMs,
      abandon: () => {
        pending.delete(key);
        abandoned.abort();
      },
      waitingRequests: 0,
    };
    pending.set(key, validation);
    return validation;
  }

  /** Waits for the answer. If all waiting requests end before the request to Keystone was sent, it is not sent. */
  async function answerTo(validation: PendingValidation, gone: AbortSignal): Promise<Token | undefined> {
    validation.waitingRequests += 1;
    const leave = (): void => {
      validation.waitingRequests -= 1;
      if (validation.waitingRequests === 0 && validation.sentMs() === undefined) validation.abandon();
    };
    if (gone.aborted) leave();
    else gone.addEventListener('abort', leave, { once: true });
    try {
      return await validation.answer;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  }

  return async (token, allowExpired, { client, gone }, budget) => {
    const key = hash('sha256', token, 'base64');
    const known = cache.get(key);
    if (known !== undefined) return isCurrent(known, allowExpired) ? known : undefined;
    // An expired token is valid only if a service sends it together with its valid service token.
    const name = `${key} ${allowExpired}`;
    if (invalid.get(name)) return undefined;
    if (budget.leftMs <= 0)
      throw new KeystoneUnreachable(
        'Keystone needed all the time of the request to issue the token of the service user.',
      );
    const beganMs = performance.now();
    const validateUntil = (deadlineMs: number) => validate(token, allowExpired, deadlineMs);
    const validation = pending.get(name) ?? begin(name, client, validateUntil, budget.leftMs);
    const valid = await answerTo(validation, gone());
    budget.leftMs -= performance.now() - Math.max(beganMs, validation.sentMs() ?? beganMs);
    if (valid === undefined) invalid.set(name, true);
    if (valid === undefined || !isCurrent(valid, allowExpired)) return undefined;
    cache.set(key, valid);
    return valid;
  };
}

const isCurrent = ({ expiresAtMs }: Token, allowExpired: boolean): boolean => allowExpired || expiresAtMs > Date.now();
