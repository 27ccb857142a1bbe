import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import * as v from 'valibot';
import type { JwtConfig } from '../../config/config.ts';
import { maskUrls } from '../../config/database_url.ts';
import { readPem } from '../../text/pem.ts';
import { messageOf } from '../../text/print.ts';
import { readAnswer, trustedAuthorities } from '../outgoing.ts';

/** The public keys of an issuer. */
export type IssuerKeys = {
  /** What finds the key of a token among the present keys; undefined where there are none. */
  present(): JWTVerifyGetKey | undefined;
  /** Fetches the keys for a token whose key is unknown, if the last fetch is long enough ago. @returns whether it has fetched them */
  fetchAgain(): Promise<boolean>;
  /** How long `fetchAgain` does not fetch yet, in milliseconds. */
  msUntilFetch(): number;
  close(): void;
};

const answerWithinMs = 5_000;
const mostAnswerBytes = 1024 * 1024;
/** How often the keys are fetched without a reason. */
const fetchEveryMs = 10 * 60_000;
/** How long keys are used after they were fetched, while the issuer does not answer. */
const usableMs = 24 * 3_600_000;
/** How often the keys are fetched at most because the key of a token is unknown: any client can send such a token. */
const fetchAtMostEveryMs = 30_000;

const keySet = v.object({ keys: v.array(v.looseObject({ kty: v.string() })) });
const discovery = v.object({ issuer: v.string(), jwks_uri: v.string() });

/** @param log gets a line when keys could not be fetched */
export function openIssuerKeys(
  name: string,
  settings: Pick<JwtConfig, 'issuer' | 'jwksUri' | 'jwksFile' | 'cafile'>,
  log: { readonly warn: (line: string) => void },
): IssuerKeys {
  const { jwksFile } = settings;
  if (jwksFile !== undefined) {
    const ofFile = finderOf(readFileSync(jwksFile, 'utf8'));
    return { present: () => ofFile, fetchAgain: async () => false, msUntilFetch: () => 0, close: () => {} };
  }
  let found: { readonly finder: JWTVerifyGetKey; readonly fetchedMs: number } | undefined;
  let beganMs = Number.NEGATIVE_INFINITY;
  let fetching: Promise<void> | undefined;
  const fetchNow = (): Promise<void> => {
    beganMs = performance.now();
    fetching ??= fetchKeys(settings)
      .then((text) => {
        found = { finder: finderOf(text), fetchedMs: performance.now() };
      })
      .catch((error: unknown) => log.warn(`The keys of [jwt:${name}] could not be fetched: ${messageOf(error)}.`))
      .finally(() => {
        fetching = undefined;
      });
    return fetching;
  };
  void fetchNow();
  const msUntilFetch = () => beganMs + fetchAtMostEveryMs - performance.now();
  const timer = setInterval(fetchNow, fetchEveryMs);
  timer.unref();
  return {
    present: () => (found !== undefined && performance.now() - found.fetchedMs < usableMs ? found.finder : undefined),
    fetchAgain: async () => {
      if (fetching === undefined && msUntilFetch() > 0) return false;
      await (fetching ?? fetchNow());
      return true;
    },
    msUntilFetch,
    close: () => clearInterval(timer),
  };
}

/** @throws Error where the text is no JSON Web Key Set */
function finderOf(text: string): JWTVerifyGetKey {
  const parsed = v.safeParse(keySet, JSON.parse(text));
  if (!parsed.success) throw new Error('they are no JSON Web Key Set');
  // A secret key in the set of a public issuer would be a mistake of the issuer.
  const keys = parsed.output.keys.filter(({ kty }) => kty !== 'oct');
  return createLocalJWKSet({ keys } satisfies JSONWebKeySet);
}

async function fetchKeys({
  issuer = '',
  jwksUri,
  cafile,
}: Pick<JwtConfig, 'issuer' | 'jwksUri' | 'cafile'>): Promise<string> {
  const ca = cafile === undefined ? undefined : readPem(cafile);
  if (jwksUri !== undefined) return get(jwksUri, ca);
  const parsed = v.safeParse(discovery, JSON.parse(await get(discoveryUrl(issuer), ca)));
  if (!parsed.success) throw new Error(`${discoveryUrl(issuer)} does not name jwks_uri`);
  if (parsed.output.issuer !== issuer)
    throw new Error(`${discoveryUrl(issuer)} is of another issuer, ${parsed.output.issuer}`);
  return get(parsed.output.jwks_uri, ca);
}

/** OpenID Connect Discovery 1.0, section 4. */
const discoveryUrl = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** The answer to a GET. Redirects are not followed. @throws Error with the reason */
function get(url: string, ca: string | undefined): Promise<string> {
  const open = url.startsWith('https:') ? https.request : http.request;
  const shown = maskUrls(url);
  return new Promise((resolve, reject) => {
    const request = open(url, {
      ...(url.startsWith('https:') ? { ca: ca ?? trustedAuthorities() } : {}),
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(answerWithinMs),
    });
    request.on('error', (error) =>
      reject(
        // The only signal is the time-out.
        error.name === 'AbortError' ? new Error(`${shown} did not answer within ${answerWithinMs / 1000} s`) : error,
      ),
    );
    request.on('response', (response) => {
      if (response.statusCode !== 200) {
        response.resume();
        reject(new Error(`${shown} answers ${response.statusCode}`));
        return;
      }
      const tooLong = () => new Error(`${shown} answers more than ${mostAnswerBytes} bytes`);
      readAnswer(response, mostAnswerBytes, tooLong).then(resolve, reject);
    });
    request.end();
  });
}
