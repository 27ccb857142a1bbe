import type { MiddlewareHandler } from 'hono';
import type { Config } from '../config/config.ts';
import type { HonoEnv } from './exchange.ts';

type Settings = Config['cors'];

/** Headers that a page may always send. */
const simpleHeaders: readonly string[] = [
  'accept',
  'accept-language',
  'content-type',
  'cache-control',
  'content-language',
  'expires',
  'last-modified',
  'pragma',
];

/**
 * Allows pages of other origins to call, as oslo.middleware does. A preflight is answered 200, with headers that allow
 * the request if its method and all its headers are allowed. All other answers get the headers that let the page read
 * them.
 */
export const allowOrigins = (settings: Settings): MiddlewareHandler<HonoEnv> =>
  async function allowOrigins(c, next) {
    await next();
    const { headers, method } = c.req.raw;
    if (method === 'OPTIONS') {
      // The response is cleared first: otherwise Hono would merge the headers of both responses.
      c.res = undefined;
      const answer = { 'content-length': '0', ...preflightHeaders(headers, settings) };
      c.res = new Response(null, { status: 200, headers: answer });
      return;
    }
    const origin = permitted(headers.get('origin'), settings);
    if (origin === undefined) return;
    const answer = c.res.headers;
    const vary = answer.get('vary');
    answer.set('vary', vary === null ? 'Origin' : `${vary},Origin`);
    answer.set('access-control-allow-origin', origin);
    if (mayHaveCredentials(origin, settings)) answer.set('access-control-allow-credentials', 'true');
    if (settings.exposeHeaders.length > 0) {
      answer.set('access-control-expose-headers', settings.exposeHeaders.join(','));
    }
  };

function preflightHeaders(headers: Headers, settings: Settings): Readonly<Record<string, string>> {
  const origin = permitted(headers.get('origin'), settings);
  const method = headers.get('access-control-request-method');
  if (origin === undefined || method === null || !settings.allowMethods.includes(method)) return {};
  const requested = (headers.get('access-control-request-headers') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const allowed = new Set([...simpleHeaders, ...settings.allowHeaders.map((name) => name.toLowerCase())]);
  if (!requested.every((name) => allowed.has(name.toLowerCase()))) return {};
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    ...(mayHaveCredentials(origin, settings) ? { 'access-control-allow-credentials': 'true' } : {}),
    ...(settings.maxAge === 0 ? {} : { 'access-control-max-age': String(settings.maxAge) }),
    'access-control-allow-methods': method,
    ...(requested.length === 0 ? {} : { 'access-control-allow-headers': requested.join(',') }),
  };
}

/** Browsers refuse credentials where every origin is allowed, and an answer must not offer them there. */
const mayHaveCredentials = (origin: string, { allowCredentials }: Settings): boolean =>
  allowCredentials && origin !== '*';

/** How the answer names the origin; undefined where it may not call. */
function permitted(origin: string | null, { allowedOrigin }: Settings): string | undefined {
  if (origin === null) return undefined;
  if (allowedOrigin.includes(origin)) return origin;
  return allowedOrigin.includes('*') ? '*' : undefined;
}
