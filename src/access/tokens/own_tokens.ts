import type { Database } from '../../../db/engine/connect.ts';
import { findToken, noteTokenUse } from '../../../db/statements/tokens.ts';
import { type Identity, noIdentity } from '../../rest/identity.ts';
import { Cache } from '../../text/cache.ts';
import { hashOf, isToken } from './token_text.ts';

/** After how long the row of a token is read again, in milliseconds; with the time of a request it is less than 5 s. */
const rereadAfterMs = 3_000;
/** How many tokens are remembered; beyond that the one that was read first is forgotten. */
const mostKnown = 20_000;
/** How many tokens that do not exist are remembered, in a separate cache: invented tokens must not replace real ones. */
const mostUnknown = 10_000;

/** The identity of a token, or why the token is refused: for the log; clients do not learn it. */
export type TokenVerdict = { readonly identity: Identity } | { readonly refused: string };

/** Finds the identity of a token that this service has made. @throws the error of the database */
export type OwnTokens = (text: string) => TokenVerdict | Promise<TokenVerdict>;

type KnownToken = { readonly identity: Identity; readonly untilMs: number };

/** Finds tokens by their rows in the database. Each process reads the row of a token in use once in `rereadAfterMs`. */
export function openOwnTokens(database: Pick<Database, 'kysely' | 'write'>): OwnTokens {
  const known = new Cache<string, KnownToken>(mostKnown);
  const unknown = new Cache<string, { readonly untilMs: number }>(mostUnknown);
  const reading = new Map<string, Promise<TokenVerdict>>();

  async function read(hash: string): Promise<TokenVerdict> {
    const untilMs = performance.now() + rereadAfterMs;
    // The clocks of this process and of the database may differ, so only the remaining time is compared.
    const askedAtMs = Date.now();
    const found = await findToken(database, hash);
    if (found === undefined) {
      known.delete(hash);
      unknown.set(hash, { untilMs });
      return noSuchToken;
    }
    // What was read holds, whether or not the use could be noted: the next reading notes it.
    if (!found.isNoted) noteTokenUse(database, found.uuid).catch(() => {});
    const { userId, projectId, roles, msLeft } = found;
    const expiresAtMs = msLeft === null ? undefined : askedAtMs + msLeft;
    const identity: Identity = { ...noIdentity, userId, projectId, roles, expiresAtMs };
    known.set(hash, { identity, untilMs });
    return { identity };
  }

  return (text) => {
    if (!isToken(text)) return { refused: 'the checksum of the token is wrong' };
    const hash = hashOf(text);
    const nowMs = performance.now();
    const held = known.get(hash);
    if (held !== undefined && nowMs < held.untilMs) {
      return hasEnded(held.identity) ? noSuchToken : { identity: held.identity };
    }
    if ((unknown.get(hash)?.untilMs ?? 0) > nowMs) return noSuchToken;
    let answer = reading.get(hash);
    if (answer === undefined) {
      answer = read(hash).finally(() => reading.delete(hash));
      reading.set(hash, answer);
    }
    return answer;
  };
}

const noSuchToken: TokenVerdict = { refused: 'the token is unknown, or has ended or been revoked' };

const hasEnded = ({ expiresAtMs = Number.POSITIVE_INFINITY }: Identity): boolean => expiresAtMs <= Date.now();
