import { createHash } from 'node:crypto';
import type { ServiceToken } from './service_token.ts';
import { KeystoneFault, readToken, type Token } from './token.ts';
import type { TokenCache } from './token_cache.ts';
import type { KeystoneAnswer, Transport } from './transport.ts';

/** What tokens are validated by, and whether the answers need the catalog. */
export type ValidateOptions = {
  readonly transport: Transport;
  readonly serviceToken: ServiceToken;
  readonly cache: TokenCache<Token>;
  readonly wantsCatalog: boolean;
};

/**
 * What Keystone says about a token; undefined where it is not valid.
 *
 * @param allowExpired whether the token may have expired, since a service vouches for it.
 * @throws KeystoneFault or KeystoneUnreachable where nothing can be said.
 */
export type ValidateToken = (token: string, allowExpired: boolean) => Promise<Token | undefined>;

/** Tokens that were valid are remembered, under a hash of theirs; requests with the same unknown token share one question. */
export function tokenValidation({ transport, serviceToken, cache, wantsCatalog }: ValidateOptions): ValidateToken {
  const asking = new Map<string, Promise<Token | undefined>>();

  async function ask(token: string, allowExpired: boolean): Promise<KeystoneAnswer> {
    const own = await serviceToken.get();
    const query = [...(wantsCatalog ? [] : ['nocatalog']), ...(allowExpired ? ['allow_expired=1'] : [])].join('&');
    const answer = await transport.send({
      method: 'GET',
      path: query === '' ? '/auth/tokens' : `/auth/tokens?${query}`,
      // Without the last one Keystone refuses tokens with access rules.
      headers: { 'x-auth-token': own, 'x-subject-token': token, 'openstack-identity-access-rules': '1' },
    });
    if (answer.status === 401) serviceToken.discard(own);
    return answer;
  }

  async function validate(token: string, allowExpired: boolean): Promise<Token | undefined> {
    let answer = await ask(token, allowExpired);
    if (answer.status === 401) answer = await ask(token, allowExpired);
    if (answer.status === 404) return undefined;
    if (answer.status === 200) return readToken(answer.text);
    throw new KeystoneFault(
      answer.status === 401
        ? 'Keystone does not take the token of the service user, which it has just given.'
        : `Keystone answers ${answer.status} to the question for a token.`,
    );
  }

  return async (token, allowExpired) => {
    const key = createHash('sha256').update(token).digest('base64');
    const known = cache.get(key);
    if (known !== undefined) return isCurrent(known, allowExpired) ? known : undefined;
    const question = `${key} ${allowExpired}`;
    let answer = asking.get(question);
    if (answer === undefined) {
      answer = validate(token, allowExpired).finally(() => asking.delete(question));
      asking.set(question, answer);
    }
    const valid = await answer;
    if (valid === undefined || !isCurrent(valid, allowExpired)) return undefined;
    cache.set(key, valid);
    return valid;
  };
}

const isCurrent = ({ expiresAtMs }: Token, allowExpired: boolean): boolean => allowExpired || expiresAtMs > Date.now();
