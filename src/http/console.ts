import type { Context, Hono } from 'hono';
import type { Config } from '../config/config.ts';
import { type ConsoleFiles, type Content, contentOf, openConsoleFiles } from '../console/files.ts';
import { isView } from '../console/views.ts';
import { ApiError, notFoundWithoutVary } from '../request/errors.ts';
import type { HonoEnv } from './exchange.ts';

/**
 * The rights of the pages: to load files of this service, and to send requests to it. Inline scripts and styles, HTML from texts, and
 * frames are forbidden.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const securityHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/**
 * Mounts the console. Its pages need no token, because they contain no data: they call the API with the token that the user enters.
 * The files are loaded by the first request for a page.
 */
export function mountConsole(app: Hono<HonoEnv>, { api }: Pick<Config, 'api'>): void {
  const files = openConsoleFiles();
  const page = async (c: Context<HonoEnv>) => {
    const { path } = c.get('exchange');
    return send(c, { type: 'text/html; charset=utf-8', ...pageOf(await files(), path, api.authStrategy) });
  };
  const file = async (c: Context<HonoEnv>, name: string) => {
    const found = (await files()).byName.get(name);
    if (found === undefined) throw notFoundWithoutVary('');
    c.get('exchange').quiet = true;
    const accepted = encodingsOf(c.req.header('accept-encoding') ?? '');
    const encoding = (['br', 'gzip'] as const).find((name) => accepted.has(name));
    return send(c, {
      type: found.type,
      ...(encoding === undefined ? found.plain : found[encoding]),
      headers: {
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'Accept-Encoding',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      },
    });
  };
  app.use('/console/*', onlyReads);
  app.get('/console', page);
  // One route for all of them: if they overlapped, Hono could not use its fastest router for any request.
  app.get('/console/*', (c) => {
    const [name = '', id, ...more] = c.get('exchange').path.split('/').slice(2);
    if (more.length > 0 || id === '') throw notFoundWithoutVary('');
    if (name === '' ? id === undefined : isView(name)) return page(c);
    if (id !== undefined) throw notFoundWithoutVary('');
    return file(c, name);
  });
}

/** @throws ApiError 405 for methods that write */
async function onlyReads(c: Context<HonoEnv>, next: () => Promise<void>): Promise<void> {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD') {
    throw new ApiError(405, 'The pages of the console are only read.', { headers: { allow: 'GET, HEAD' } });
  }
  await next();
}

/** The encodings that an Accept-Encoding header names, without encodings of weight 0. */
const encodingsOf = (header: string): ReadonlySet<string> =>
  new Set(
    header
      .toLowerCase()
      .split(',')
      .map((each) => each.trim().split(/\s*;\s*q=/))
      .filter(([, weight = '1']) => Number(weight) > 0)
      .map(([name = '']) => name),
  );

type Sent = Content & { readonly type: string; readonly headers?: Readonly<Record<string, string>> };

/** Answers with a body; 304 where the client has it already. */
function send(c: Context<HonoEnv>, { bytes, etag, type, headers }: Sent): Response {
  const tagged = { 'cache-control': 'no-cache', ...headers, ...securityHeaders, etag };
  const known =
    c.req
      .header('if-none-match')
      ?.split(',')
      .map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  if (known.includes(etag) || known.includes('*')) return new Response(null, { status: 304, headers: tagged });
  const length = { 'content-type': type, 'content-length': String(bytes.length) };
  return new Response(bytes, { status: 200, headers: { ...tagged, ...length } });
}

/** The page. Its links are relative, so they work behind a proxy with any path prefix. */
function pageOf(
  { script, style, icon }: ConsoleFiles,
  path: string,
  authStrategy: Config['api']['authStrategy'],
): Content {
  const depth = path.split('/').length - 2;
  const base = depth === 0 ? 'console/' : '../'.repeat(depth - 1);
  return contentOf(
    new TextEncoder().encode(`<!doctype html>
<html lang="en" data-auth="${authStrategy}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Placement console</title>
<link rel="icon" href="${base}${icon}" type="image/svg+xml">
<link rel="stylesheet" href="${base}${style}">
<script type="module" src="${base}${script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript.</noscript>
</body>
</html>
`),
  );
}
