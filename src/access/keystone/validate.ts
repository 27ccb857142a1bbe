import { createHash } from 'node:crypto';
import type { ServiceToken } from './service_token.ts';
import { KeystoneFault, readToken, type Token } from './token.ts';
import type { TokenCache } from './token_cache.ts';
import type { KeystoneAnswer, Transport } from './transport.ts';

/** What the validation works with, and whether answers must have the catalog. */
export type ValidateOptions = {
  readonly transport: Transport;
  readonly serviceToken: ServiceToken;
  readonly cache: TokenCache<Token>;
  /**
   * The tokens that Keystone does not know. They have a cache of their own, so that invented tokens do not remove valid
   * ones.
   */
  readonly invalid: TokenCache<true>;
  readonly wantsCatalog: boolean;
};

/**
 * What Keystone says about a token; undefined where it is not valid.
 *
 * @param allowExpired whether the token may have expired, because a service sends it with a valid token of its own.
 * @param deadlineMs by `performance.now()`: until then Keystone is asked, if it must be
 * @throws KeystoneFault or KeystoneUnreachable where it is not known whether the token is valid.
 */
export type ValidateToken = (token: string, allowExpired: boolean, deadlineMs: number) => Promise<Token | undefined>;

/**
 * Keystone's answer about a token is cached under a hash of the token. Requests with the same token that is not in the
 * cache share one question to Keystone. Failures of Keystone are not cached.
 */
export function tokenValidation({
  transport,
  serviceToken,
  cache,
  invalid,
  wantsCatalog,
}: ValidateOptions): ValidateToken {
  const asking = new Map<string, Promise<Token | undefined>>();

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

  return async (token, allowExpired, deadlineMs) => {
    const key = createHash('sha256').update(token).digest('base64');
    const known = cache.get(key);
    if (known !== undefined) return isCurrent(known, allowExpired) ? known : undefined;
    // An expired token is valid only where a service sends it with a valid token of its own.
    const question = `${key} ${allowExpired}`;
    if (invalid.get(question)) return undefined;
    let answer = asking.get(question);
    if (answer === undefined) {
      answer = validate(token, allowExpired, deadlineMs).finally(() => asking.delete(question));
      asking.set(question, answer);
    }
    const valid = await answer;
    if (valid === undefined) invalid.set(question, true);
    if (valid === undefined || !isCurrent(valid, allowExpired)) return undefined;
    cache.set(key, valid);
    return valid;
  };
}

const isCurrent = ({ expiresAtMs }: Token, allowExpired: boolean): boolean => allowExpired || expiresAtMs > Date.now();
