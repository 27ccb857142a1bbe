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
   * The tokens that Keystone does not know. They have a cache of their own, so that invented tokens do not remove valid
   * ones.
   */
  readonly invalid: TokenCache<true>;
  readonly wantsCatalog: boolean;
};

/** How much time a request has left for Keystone, in milliseconds. The time in the queue does not count. */
export type KeystonePatience = { leftMs: number };

/** The client of a request; `gone` gives a signal that is aborted where it leaves, and is called only if Keystone must be asked. */
export type Caller = { readonly client: string; readonly gone: () => AbortSignal };

/**
 * What Keystone says about a token; undefined where it is not valid.
 *
 * @param allowExpired whether the token may have expired, because a service sends it with a valid token of its own.
 * @param patience for how long Keystone may be asked; it is reduced by the time that this took
 * @throws KeystoneFault, KeystoneUnreachable or KeystoneBusy where it is not known whether the token is valid; QuestionAbandoned where the
 *   caller has left
 */
export type ValidateToken = (
  token: string,
  allowExpired: boolean,
  caller: Caller,
  patience: KeystonePatience,
) => Promise<Token | undefined>;

/** A question to Keystone, and how many requests wait for its answer. */
type Question = {
  readonly answer: Promise<Token | undefined>;
  /** When it was asked, by `performance.now()`; undefined while it is in the queue. */
  readonly askedMs: () => number | undefined;
  /** Takes it out of the queue. */
  readonly abandon: () => void;
  waitingRequests: number;
};

/**
 * Keystone's answer about a token is cached under a hash of the token. Requests with the same token that is not in the
 * cache share one question to Keystone. Failures of Keystone are not cached.
 */
export function tokenValidation({
  transport,
  queue,
  serviceToken,
  cache,
  invalid,
  wantsCatalog,
}: ValidateOptions): ValidateToken {
  const asking = new Map<string, Question>();

  async function ask(token: string, allowExpired: boolean, deadlineMs: number): Promise<KeystoneAnswer> {
    const own = await serviceToken.get(deadlineMs);
    const query = [...(wantsCatalog ? [] : ['nocatalog']), ...(allowExpired ? ['allow_expired=1'] : [])].join('&');
    // Without the last header Keystone refuses tokens with access rules.
    const headers = { 'x-auth-token': own, 'x-subject-token': token, 'openstack-identity-access-rules': '1' };
    const path = query === '' ? '/auth/tokens' : `/auth/tokens?${query}`;
    const answer = await transport.send({ method: 'GET', path, headers }, deadlineMs);
    if (answer.status === 401) serviceToken.discard(own);
    return answer;
  }

  async function validate(token: string, allowExpired: boolean, deadlineMs: number): Promise<Token | undefined> {
    let answer = await ask(token, allowExpired, deadlineMs);
    if (answer.status === 401) answer = await ask(token, allowExpired, deadlineMs);
    if (answer.status === 404) return undefined;
    if (answer.status === 200) return readToken(answer.text);
    throw new KeystoneFault(
      answer.status === 401
        ? 'Keystone does not take the token of the service user, which it has just given.'
        : `Keystone answered ${answer.status} when it was asked to validate a token.`,
    );
  }

  function begin(
    key: string,
    client: string,
    validateUntil: (deadlineMs: number) => Promise<Token | undefined>,
    leftMs: number,
  ): Question {
    let askedMs: number | undefined;
    const abandoned = new AbortController();
    const ask = (): Promise<Token | undefined> => {
      askedMs = performance.now();
      return validateUntil(askedMs + leftMs);
    };
    const question: Question = {
      answer: queue.ask(ask, { client, gone: abandoned.signal }).finally(() => {
        if (asking.get(key) === question) asking.delete(key);
      }),
      askedMs: () => askedMs,
      abandon: () => {
        asking.delete(key);
        abandoned.abort();
      },
      waitingRequests: 0,
    };
    asking.set(key, question);
    return question;
  }

  /** Waits for the answer. If all waiting requests end before the question was asked, it is not asked. */
  async function answerTo(question: Question, gone: AbortSignal): Promise<Token | undefined> {
    question.waitingRequests += 1;
    const leave = (): void => {
      question.waitingRequests -= 1;
      if (question.waitingRequests === 0 && question.askedMs() === undefined) question.abandon();
    };
    if (gone.aborted) leave();
    else gone.addEventListener('abort', leave, { once: true });
    try {
      return await question.answer;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  }

  return async (token, allowExpired, { client, gone }, patience) => {
    const key = hash('sha256', token, 'base64');
    const known = cache.get(key);
    if (known !== undefined) return isCurrent(known, allowExpired) ? known : undefined;
    // An expired token is valid only where a service sends it with a valid token of its own.
    const name = `${key} ${allowExpired}`;
    if (invalid.get(name)) return undefined;
    if (patience.leftMs <= 0)
      throw new KeystoneUnreachable('Keystone took all the time of the request for its service token.');
    const beganMs = performance.now();
    const validateUntil = (deadlineMs: number) => validate(token, allowExpired, deadlineMs);
    const question = asking.get(name) ?? begin(name, client, validateUntil, patience.leftMs);
    const valid = await answerTo(question, gone());
    patience.leftMs -= performance.now() - Math.max(beganMs, question.askedMs() ?? beganMs);
    if (valid === undefined) invalid.set(name, true);
    if (valid === undefined || !isCurrent(valid, allowExpired)) return undefined;
    cache.set(key, valid);
    return valid;
  };
}

const isCurrent = ({ expiresAtMs }: Token, allowExpired: boolean): boolean => allowExpired || expiresAtMs > Date.now();
