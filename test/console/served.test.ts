/* The files of the console as they are served: where, with which headers, and how large. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { anyEngine } from '../support/engines.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

const withConsole = (overrides: ConfigOverrides, use: (get: Get) => Promise<void>) =>
  withTestService(anyEngine, overrides, ({ app }) =>
    use(async (path, headers = {}, method = 'GET') => app.request(path, { headers, method })),
  );
type Get = (path: string, headers?: Readonly<Record<string, string>>, method?: string) => Promise<Response>;

const script = /src="([^"]+)"/;

test('pages name files by their digest, forbid inline scripts and frames, and need no token', () =>
  withConsole({}, async (get) => {
    const depths = { '/console': 'console/', '/console/': '', '/console/fleet': '', '/console/providers/x': '../' };
    for (const [path, base] of Object.entries(depths)) {
      const answer = await get(path);
      assert.equal(answer.status, 200, path);
      const policy = answer.headers.get('content-security-policy') ?? '';
      assert.match(policy, /default-src 'none'/);
      assert.match(policy, /frame-ancestors 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|http|data:/);
      assert.equal(answer.headers.get('cache-control'), 'no-cache');
      assert.equal(answer.headers.get('set-cookie'), null);
      assert.equal(answer.headers.get('x-frame-options'), 'DENY');
      const text = await answer.text();
      assert.match(script.exec(text)?.[1] ?? '', new RegExp(`^${base.replaceAll('.', '\\.')}main-[A-Z0-9]{8}\\.js$`));
      assert.doesNotMatch(text, /<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=/);
      const etag = answer.headers.get('etag') ?? '';
      assert.equal((await get(path, { 'if-none-match': etag })).status, 304);
    }
  }));

test('files are compressed, cacheable for ever, with a tag for each encoding, and below 150 kB in total', () =>
  withConsole({}, async (get) => {
    const text = await (await get('/console')).text();
    const names = [...text.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, name]) => `/${name}`);
    assert.equal(names.length, 3);
    let sent = 0;
    for (const name of names) {
      const plain = await get(name);
      const content = Buffer.from(await plain.arrayBuffer());
      assert.equal(plain.headers.get('content-encoding'), null);
      assert.match(plain.headers.get('cache-control') ?? '', /immutable/);
      const tags = new Set([plain.headers.get('etag')]);
      for (const [accepted, encoding, decompress] of [
        ['gzip, deflate, br', 'br', brotliDecompressSync],
        ['gzip, br;q=0', 'gzip', gunzipSync],
      ] as const) {
        const answer = await get(name, { 'accept-encoding': accepted });
        assert.equal(answer.headers.get('content-encoding'), encoding);
        assert.equal(answer.headers.get('vary'), 'Accept-Encoding');
        const body = Buffer.from(await answer.arrayBuffer());
        assert.equal(answer.headers.get('content-length'), String(body.length));
        assert.ok(decompress(body).equals(content), name);
        tags.add(answer.headers.get('etag'));
        const etag = answer.headers.get('etag') ?? '';
        assert.equal((await get(name, { 'accept-encoding': accepted, 'if-none-match': etag })).status, 304);
        if (encoding === 'br') sent += body.length;
      }
      assert.equal(tags.size, 3, 'a tag is of one encoding');
    }
    assert.ok(sent < 150_000, `${sent} bytes`);
  }));

test('other paths below /console are 404, and writes 405', () =>
  withConsole({}, async (get) => {
    for (const path of [
      '/console/nothing',
      '/console/main-AAAAAAAA.js',
      '/console/fleet/a/b',
      '/console/../package.json',
    ]) {
      assert.equal((await get(path, { 'x-auth-token': 'admin' })).status, 404, path);
    }
    const newest = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.9' };
    const { errors } = JSON.parse(await (await get('/console/nothing', newest)).text());
    assert.equal(errors[0].detail, 'The resource could not be found.');
    const refused = await get('/console', {}, 'POST');
    assert.equal(refused.status, 405);
    assert.equal(refused.headers.get('allow'), 'GET, HEAD');
    const head = await get('/console', {}, 'HEAD');
    assert.equal(head.status, 200);
    assert.equal(await head.text(), '');
  }));

for (const [what, overrides, isServed] of [
  ['noauth2 on a loopback address', {}, true],
  ['noauth2 on all addresses', { api: { authStrategy: 'noauth2', host: '0.0.0.0' } }, false],
  [
    'noauth2 on all addresses, and enabled',
    { api: { authStrategy: 'noauth2', host: '0.0.0.0' }, console: { enabled: true } },
    true,
  ],
  ['noauth2 on a loopback address, and disabled', { console: { enabled: false } }, false],
] as const) {
  test(`with ${what} it is ${isServed ? 'served' : 'not served'}`, () =>
    withConsole(overrides, async (get) => {
      const { status } = await get('/console', { 'x-auth-token': 'admin' });
      assert.equal(status, isServed ? 200 : 404);
    }));
}

test('with the routes of the console Hono can use its fastest router', () =>
  withTestService(anyEngine, { console: { enabled: true } }, async ({ app }) => {
    assert.equal((await app.request('/')).status, 200);
    assert.match(app.router.name, /RegExpRouter/);
  }));
