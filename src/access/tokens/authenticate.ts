import type { Database } from '../../../db/engine/connect.ts';
import type { JwtConfig } from '../../config/config.ts';
import { badRequest } from '../../request/errors.ts';
import { openOwnTokens, type TokenVerdict } from './own_tokens.ts';
import { isMarked } from './token_text.ts';

/** Finds the identity of requests by their tokens. A token was made by this service, or is a JSON Web Token. */
export type Tokens = {
  /** @returns undefined where the request has no token. @throws ApiError 400 where it has two; what the database throws */
  authenticate(headers: Headers): TokenVerdict | Promise<TokenVerdict> | undefined;
  close(): void;
};

/** The library for JSON Web Tokens is loaded where an issuer is configured. */
const jwtParts = () => import('./jwt.ts');

/** Authentication by `auth_strategy = tokens`. */
export async function openTokens(
  database: Pick<Database, 'kysely' | 'write'>,
  sections: Readonly<Record<string, JwtConfig>>,
  log: { readonly warn: (line: string) => void },
): Promise<Tokens> {
  const own = openOwnTokens(database);
  const jwt = Object.keys(sections).length === 0 ? undefined : (await jwtParts()).openJsonWebTokens(sections, log);
  return {
    authenticate: (headers) => {
      const text = tokenIn(headers);
      if (text === undefined) return undefined;
      if (isMarked(text)) return own(text);
      if (text.split('.').length !== 3) return { refused: 'it is no token of this service, and no JSON Web Token' };
      return jwt?.judge(text) ?? { refused: 'there is no section [jwt:NAME]' };
    },
    close: () => jwt?.close(),
  };
}

/** The token of a request: `Authorization: Bearer` (RFC 6750), or `X-Auth-Token` as clients of OpenStack send it. */
function tokenIn(headers: Headers): string | undefined {
  const [, bearer] = /^bearer +(\S+)\s*$/i.exec(headers.get('authorization') ?? '') ?? [];
  const plain = headers.get('x-auth-token')?.trim() || undefined;
  if (bearer !== undefined && plain !== undefined && bearer !== plain) {
    throw badRequest('The headers Authorization and X-Auth-Token have different tokens: send one of them.');
  }
  return bearer ?? plain;
}
