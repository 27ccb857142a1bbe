import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { JwtConfig } from '../../config/config.ts';
import { tryLater } from '../../request/errors.ts';
import { type Identity, noIdentity } from '../../rest/identity.ts';
import { Cache } from '../../text/cache.ts';
import { messageOf } from '../../text/print.ts';
import { isStorable } from '../../text/strings.ts';
import { type IssuerKeys, openIssuerKeys } from './issuer_keys.ts';
import type { TokenVerdict } from './own_tokens.ts';
import { hashOf } from './token_text.ts';

/** Finds the identity of a JSON Web Token (RFC 7519). */
export type JsonWebTokens = {
  /** @throws ApiError 503 where the token cannot be judged, since the issuer is unavailable */
  judge(text: string): TokenVerdict | Promise<TokenVerdict>;
  close(): void;
};

/** Signatures by a public key. The header of a token can choose only algorithms of this list. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Headers by which a token would name the place of its key, or extensions that must be understood. */
const refusedHeaders = ['jku', 'x5u', 'jwk', 'crit'] as const;
/** How far the clocks of the issuer and of this machine may differ. */
const leewaySeconds = 30;
const longestToken = 8 * 1024;
/** How long a token that was verified is not verified again, and how many such tokens are remembered. */
const verifiedMs = 30_000;
const mostVerified = 10_000;

type Issuer = { readonly name: string; readonly settings: JwtConfig; readonly keys: IssuerKeys };
type Verified = { readonly identity: Identity; readonly untilMs: number };

/** @param sections the sections `[jwt:NAME]`, in which `jwtProblems` finds nothing wrong */
export function openJsonWebTokens(
  sections: Readonly<Record<string, JwtConfig>>,
  log: { readonly warn: (line: string) => void },
): JsonWebTokens {
  const issuers = new Map(
    Object.entries(sections).map(([name, settings]): [string | undefined, Issuer] => [
      settings.issuer,
      { name, settings, keys: openIssuerKeys(name, settings, log) },
    ]),
  );
  const verified = new Cache<string, Verified>(mostVerified);

  async function verify(text: string, hash: string): Promise<TokenVerdict> {
    const issuer = issuers.get(issuerOf(text));
    if (issuer === undefined) return { refused: 'the issuer of the token is not that of any section [jwt:NAME]' };
    const { name, settings } = issuer;
    const header = decodeProtectedHeader(text);
    const unwanted = refusedHeaders.find((field) => field in header);
    if (unwanted !== undefined) return { refused: `[jwt:${name}]: the token has the header ${unwanted}` };
    const payload = await payloadOf(text, issuer);
    const identity = identityOf(payload, settings);
    if ('refused' in identity) return { refused: `[jwt:${name}]: ${identity.refused}` };
    verified.set(hash, { identity: identity.identity, untilMs: performance.now() + verifiedMs });
    return identity;
  }

  return {
    judge: (text) => {
      if (text.length > longestToken) return { refused: `the token has more than ${longestToken} characters` };
      const hash = hashOf(text);
      const known = verified.get(hash);
      if (known !== undefined && performance.now() < known.untilMs && !hasEnded(known.identity)) {
        return { identity: known.identity };
      }
      return verify(text, hash).catch((error: unknown): TokenVerdict => {
        // A DOMException is of WebCrypto: the key in the set of the issuer is none.
        if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException) {
          return { refused: messageOf(error) };
        }
        throw error;
      });
    },
    close: () => {
      for (const { keys } of issuers.values()) keys.close();
    },
  };
}

/** The issuer that a token claims, by which the keys are chosen before anything is verified. */
function issuerOf(text: string): string | undefined {
  const { iss } = decodeJwt(text);
  return typeof iss === 'string' ? iss : undefined;
}

const keysUnknown = 'The token cannot be checked: the keys of its issuer could not be fetched; please retry.';

/**
 * The claims of a token whose signature, issuer, audience and times are right.
 *
 * @throws JOSEError, TypeError or DOMException with the reason; ApiError 503 where there are no keys of the issuer: the token may be right
 */
async function payloadOf(text: string, { settings, keys }: Issuer): Promise<JWTPayload> {
  const by = async (finder: JWTVerifyGetKey): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(text, finder, {
      algorithms,
      issuer: settings.issuer ?? '',
      audience: [...settings.audience],
      clockTolerance: leewaySeconds,
      requiredClaims: ['exp', 'iss', 'aud'],
    });
    if (payload.iat !== undefined && payload.iat > Date.now() / 1000 + leewaySeconds) {
      throw new errors.JWTClaimValidationFailed('"iat" is in the future', payload, 'iat', 'check_failed');
    }
    return payload;
  };
  const known = keys.present();
  if (known !== undefined) {
    try {
      return await by(known);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await keys.fetchAgain())) throw error;
    }
  } else await keys.fetchAgain();
  const fetched = keys.present();
  if (fetched === undefined) throw tryLater(keysUnknown, Math.max(1, Math.ceil(keys.msUntilFetch() / 1000)));
  return by(fetched);
}

/** The identity in the claims of a verified token, by the settings of its issuer. */
function identityOf(payload: JWTPayload, settings: JwtConfig): TokenVerdict {
  const missing = requirements(settings.require).find(({ pointer, values }) => {
    const claim = claimAt(payload, pointer);
    return !(Array.isArray(claim) ? claim : [claim]).some((value) => values.includes(textOf(value) ?? ''));
  });
  if (missing !== undefined) return { refused: `the claim ${missing.pointer} is not ${missing.values.join(' or ')}` };
  const userId = textOf(claimAt(payload, settings.userClaim));
  if (!userId) return { refused: `the claim ${settings.userClaim}, the user, is missing` };
  const projectId = textOf(claimAt(payload, settings.projectClaim ?? ''));
  if (!projectId) return { refused: `the claim ${settings.projectClaim}, the project, is missing` };
  if (Math.max(userId.length, projectId.length) > 255)
    return { refused: 'the user or the project has more than 255 characters' };
  if (![userId, projectId].every(isStorable))
    return { refused: 'the user or the project contains a NUL or a lone surrogate' };
  if (!settings.projects.some((pattern) => fits(pattern, projectId))) {
    return { refused: `the project ${JSON.stringify(projectId)} is none of ${settings.projects.join(', ')}` };
  }
  const claimed = settings.rolesClaim === undefined ? undefined : claimAt(payload, settings.rolesClaim);
  const further =
    typeof claimed === 'string' ? claimed.split(/\s+/) : Array.isArray(claimed) ? claimed.map(textOf) : [];
  const accepted = further.filter((role) => role !== undefined).filter((role) => settings.acceptRoles.includes(role));
  return {
    identity: {
      ...noIdentity,
      userId,
      projectId,
      roles: [...new Set([...settings.roles, ...accepted])],
      // Until then it is accepted: a client that waits for changes with it must not get an empty answer at once, again and again.
      expiresAtMs: ((payload.exp ?? 0) + leewaySeconds) * 1000,
    },
  };
}

/** A claim by its name, or by a JSON pointer (RFC 6901); undefined where there is none. */
function claimAt(payload: JWTPayload, name: string): unknown {
  if (!name.startsWith('/')) return Object.hasOwn(payload, name) ? payload[name] : undefined;
  let value: unknown = payload;
  for (const part of name.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key]; // it is an object that has the key
  }
  return value;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;

/** `/claim=value` of a list; several values for one claim. */
function requirements(
  list: readonly string[],
): readonly { readonly pointer: string; readonly values: readonly string[] }[] {
  const pairs = list.map((item) => {
    const at = item.indexOf('=');
    return { pointer: item.slice(0, at), value: item.slice(at + 1) };
  });
  return [...Map.groupBy(pairs, ({ pointer }) => pointer)].map(([pointer, of]) => ({
    pointer,
    values: of.map(({ value }) => value),
  }));
}

/** Whether a text matches a pattern, in which `*` matches any text. */
function fits(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}

const hasEnded = ({ expiresAtMs = 0 }: Identity): boolean => expiresAtMs <= Date.now();
