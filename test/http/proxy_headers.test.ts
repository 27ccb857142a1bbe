/** What proxies in front say about a client. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readForwarded } from '../../src/http/exchange.ts';

test('the log has the first address of the list, and turns go by the last one, which the nearest proxy has added', () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, string | undefined, string | undefined])[] = [
    [{}, undefined, undefined],
    [{ 'x-forwarded-for': '10.0.0.1' }, '10.0.0.1', '10.0.0.1'],
    [{ 'x-forwarded-for': 'invented, 10.0.0.1 , 2001:db8::7' }, 'invented', '2001:db8::7'],
    [{ 'x-forwarded-for': 'invented,' }, 'invented', undefined],
    [{ forwarded: 'for=10.0.0.1;proto=https' }, '10.0.0.1', '10.0.0.1'],
    [{ forwarded: 'for=invented, for="[2001:db8::7]:4711";proto=http' }, 'invented', '[2001:db8::7]:4711'],
    // A client cannot hide behind a proxy that names no address.
    [{ forwarded: 'for=invented, proto=https' }, 'invented', undefined],
    [{ forwarded: 'for="10.0.0.1, for=x', 'x-forwarded-for': '10.0.0.2' }, '"10.0.0.1', 'x'],
  ];
  for (const [headers, first, last] of cases) {
    const { client, sender } = readForwarded(new Headers(headers));
    assert.deepEqual([client, sender], [first, last], JSON.stringify(headers));
  }
});

test('the other values are those of the proxy that is nearest to the client', () => {
  const list = 'proto=https;host="cloud.example.com", proto=http;host=inside;for=10.0.0.1';
  const { scheme, host, prefix } = readForwarded(new Headers({ forwarded: list, 'x-forwarded-prefix': '/a/, /b' }));
  assert.deepEqual([scheme, host, prefix], ['https', 'cloud.example.com', '/a']);
});
