/** Requests that no well-meaning client sends: each ends with a 4xx or a closed connection, and the service goes on. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { suite, test } from 'node:test';
import { goodHeaders, type HostileServer, lines, post, withHostileServer } from './hostile_server.ts';

/** What a server may do with a request that is not one: refuse it, or hang up without a word. */
async function isRefused(server: HostileServer, what: string, request: string | Buffer): Promise<void> {
  const { statuses, closed, text } = await server.send(request, { patienceMs: 5_000 });
  assert.ok(closed, `${what}: the connection is closed`);
  assert.ok(statuses.length <= 1, `${what}: one answer at most, not ${statuses}`);
  for (const status of statuses) assert.ok(status >= 400 && status < 500, `${what}: ${text.slice(0, 300)}`);
}

const head = (...more: readonly string[]) =>
  lines('POST /resource_providers HTTP/1.1', ...goodHeaders, 'Content-Type: application/json', ...more);
const provider = '{"name": "smuggled"}';
/** A request that would make a provider if it were taken for one. */
const inner = post(provider).toString();

suite('hostile requests', () => {
  test('that are smuggled or malformed are refused, and nothing behind them is read', () =>
    withHostileServer(async (server) => {
      for (const [what, request] of [
        ['both lengths', `${head('Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n${inner}`],
        [
          'both lengths, the other order',
          `${head('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${inner}`,
        ],
        ['two lengths', `${head('Content-Length: 20', 'Content-Length: 0')}${provider}${inner}`],
        ['two equal lengths', `${head('Content-Length: 20', 'Content-Length: 20')}${provider}${inner}`],
        ['a list of lengths', `${head('Content-Length: 20, 20')}${provider}`],
        ['a negative length', `${head('Content-Length: -1')}${provider}`],
        ['a signed length', `${head('Content-Length: +20')}${provider}`],
        ['a hexadecimal length', `${head('Content-Length: 0x14')}${provider}`],
        ['a length beyond 64 bits', `${head('Content-Length: 99999999999999999999')}${provider}`],
        ['a space before a colon', `${head('Content-Length : 20')}${provider}`],
        ['a tab before a colon', `${head('Transfer-Encoding\t: chunked')}0\r\n\r\n`],
        ['a folded header', `${head('X-Folded: a', ' b', 'Content-Length: 20')}${provider}`],
        ['a folded first header', `POST / HTTP/1.1\r\n Host: localhost\r\n\r\n`],
        ['a header without a colon', `${head('Content-Length')}${provider}`],
        ['a header without a name', `${head(': 20')}${provider}`],
        ['a NUL in a header', `${head('X-Nul: a\0b', 'Content-Length: 20')}${provider}`],
        ['a carriage return in a header', `${head('X-Cr: a\rContent-Length: 20')}${provider}`],
        ['bare line feeds', head('Content-Length: 20').replaceAll('\r\n', '\n') + provider],
        ['a bare carriage return', head('Content-Length: 20').replaceAll('\r\n', '\r') + provider],
        ['an unknown encoding', `${head('Transfer-Encoding: gzip')}${provider}`],
        ['chunked, but not last', `${head('Transfer-Encoding: chunked, identity')}0\r\n\r\n${inner}`],
        ['chunked twice', `${head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n${inner}`],
        ['chunked with a vertical tab', `${head('Transfer-Encoding: \u000bchunked')}0\r\n\r\n${inner}`],
        ['a chunk size that is no number', `${head('Transfer-Encoding: chunked')}xyz\r\n${provider}\r\n0\r\n\r\n`],
        ['a negative chunk size', `${head('Transfer-Encoding: chunked')}-14\r\n${provider}\r\n0\r\n\r\n`],
        ['a chunk size with 0x', `${head('Transfer-Encoding: chunked')}0x14\r\n${provider}\r\n0\r\n\r\n`],
        [
          'a chunk size beyond 64 bits',
          `${head('Transfer-Encoding: chunked')}fffffffffffffffff\r\n${provider}\r\n0\r\n\r\n`,
        ],
        ['a chunk longer than its size', `${head('Transfer-Encoding: chunked')}5\r\n${provider}\r\n0\r\n\r\n`],
        ['a bare line feed behind a chunk size', `${head('Transfer-Encoding: chunked')}14\n${provider}\n0\n\n`],
        [
          'a chunk extension with a line feed',
          `${head('Transfer-Encoding: chunked')}14;a\nb\r\n${provider}\r\n0\r\n\r\n`,
        ],
        ['two hosts', `${head('Host: elsewhere', 'Content-Length: 20')}${provider}`],
        ['no host', lines('GET /resource_providers HTTP/1.1', 'X-Auth-Token: admin', 'Connection: close')],
        ['a host that is none', lines('GET /resource_providers HTTP/1.1', 'Host: a b<', ...goodHeaders.slice(1))],
        ['HTTP/0.9', 'GET /\r\n\r\n'],
        ['HTTP/1.9', lines('GET / HTTP/1.9', ...goodHeaders)],
        ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
        ['a lower case method', lines('get / HTTP/1.1', ...goodHeaders)],
        ['an unknown method', lines('BREW /resource_providers HTTP/1.1', ...goodHeaders)],
        ['CONNECT', lines('CONNECT example.com:443 HTTP/1.1', ...goodHeaders)],
        ['TRACE', lines('TRACE /resource_providers HTTP/1.1', ...goodHeaders)],
        ['a space in the target', lines('GET /resource providers HTTP/1.1', ...goodHeaders)],
        ['a NUL in the target', lines('GET /resource_providers?name=\0 HTTP/1.1', ...goodHeaders)],
        ['an asterisk for a target', lines('GET * HTTP/1.1', ...goodHeaders)],
        ['a target without a slash', lines('GET resource_providers HTTP/1.1', ...goodHeaders)],
        ['a TLS handshake', Buffer.from('16030100a5010000a10303', 'hex')],
        ['an upgrade to HTTP/2', lines('GET /nowhere HTTP/1.1', 'Upgrade: h2c', 'HTTP2-Settings: AAA', ...goodHeaders)],
        ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, place) => (place * 167 + 13) % 256))],
      ] as const) {
        await isRefused(server, what, request);
        assert.equal(await server.status('/resource_providers'), 200, what);
      }
    }));

  test('that are huge or deeply nested are refused', () =>
    withHostileServer(async (server) => {
      const deep = (open: string, inside: string, close: string, levels: number) =>
        open.repeat(levels) + inside + close.repeat(levels);
      const group = (number: number) => `resources${number}=VCPU:1`;
      const many = (count: number, each: (place: number) => string, by = '&') =>
        Array.from({ length: count }, (_, place) => each(place)).join(by);
      for (const [what, request] of [
        ['a long target', lines(`GET /${'a'.repeat(200_000)} HTTP/1.1`, ...goodHeaders)],
        ['a long header', lines('GET /nowhere HTTP/1.1', `X-Long: ${'a'.repeat(200_000)}`, ...goodHeaders)],
        ['many headers', lines('GET /nowhere HTTP/1.1', ...Array.from({ length: 20_000 }, (_, n) => `X-${n}: a`))],
        ['a long body', post(`{"name": "${'a'.repeat(200_000)}"}`)],
        ['a body that says to be long', head('Content-Length: 9007199254740991')],
        ['a long chunked body', `${head('Transfer-Encoding: chunked')}30d40\r\n${'a'.repeat(200_000)}\r\n0\r\n\r\n`],
        ['long trailers', `${head('Transfer-Encoding: chunked')}0\r\nX-Long: ${'a'.repeat(200_000)}\r\n\r\n`],
        ['100,000 brackets', post('['.repeat(100_000))],
        ['50,000 nested lists', post(deep('[', '', ']', 50_000))],
        ['a name of nested lists', post(`{"name": ${deep('[', '', ']', 50_000)}}`)],
        ['nested objects', post(deep('{"name":', '1', '}', 12_000))],
        ['nested unknown keys', post(`{"name": "a", "b": ${deep('{"b":', '1', '}', 15_000)}}`)],
        [
          'nested traits',
          post(
            `{"resource_provider_generation": 0, "traits": ${deep('[', '', ']', 50_000)}}`,
            '/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11/traits',
            'PUT',
          ),
        ],
        [
          'nested inventories',
          post(
            `{"resource_provider_generation": 0, "inventories": ${deep('{"VCPU":', '1', '}', 12_000)}}`,
            '/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11/inventories',
            'PUT',
          ),
        ],
        [
          'nested allocations',
          post(
            `{"allocations": ${deep('{"a":', '1', '}', 12_000)}}`,
            '/allocations/1b1d3c4e-1111-4222-8333-444455556666',
            'PUT',
          ),
        ],
        [
          'nested mappings',
          post(
            `{"allocations": {}, "mappings": ${deep('{"_A":', '[]', '}', 12_000)}, "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "A"}`,
            '/allocations/1b1d3c4e-1111-4222-8333-444455556666',
            'PUT',
          ),
        ],
        ['nested claims', post(deep('{"1b1d3c4e-1111-4222-8333-444455556666":', '1', '}', 2_000), '/allocations')],
        ['nested reshape', post(`{"inventories": ${deep('{"a":', '1', '}', 9_000)}, "allocations": {}}`, '/reshaper')],
        [
          '28,000 wrong aggregates',
          post(
            `{"aggregates": [${many(28_000, () => '1', ',')}], "resource_provider_generation": 1}`,
            '/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11/aggregates',
            'PUT',
          ),
        ],
        ['10,000 unknown keys', post(`{${many(10_000, (n) => `"${n}":1`, ',')}}`)],
        [
          'a number of 100,000 digits',
          post(
            `{"resource_provider_generation": ${'9'.repeat(100_000)}, "traits": []}`,
            '/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11/traits',
            'PUT',
          ),
        ],
        [
          '5,000 groups',
          lines(`GET /allocation_candidates?${many(5_000, group)}&group_policy=oops HTTP/1.1`, ...goodHeaders),
        ],
        ['30,000 parameters', lines(`GET /resource_providers?${many(30_000, () => 'a=b')} HTTP/1.1`, ...goodHeaders)],
        [
          'nested in_tree',
          lines(`GET /allocation_candidates?${deep('in:', '', ':', 20_000)}=1 HTTP/1.1`, ...goodHeaders),
        ],
        [
          'nested member_of',
          lines(`GET /resource_providers?member_of=${deep('in:', '!', ',', 20_000)} HTTP/1.1`, ...goodHeaders),
        ],
        [
          'nested required',
          lines(`GET /resource_providers?required=${deep('in:', '!', ',', 20_000)} HTTP/1.1`, ...goodHeaders),
        ],
      ] as const) {
        await isRefused(server, what, request);
        assert.equal(await server.status('/resource_providers'), 200, what);
      }
    }));

  test('with tricky characters are refused', () =>
    withHostileServer(async (server) => {
      const put = (path: string) => lines(`PUT ${path} HTTP/1.1`, ...goodHeaders, 'Content-Length: 0');
      const bytes = (...each: readonly number[]) =>
        Buffer.concat([Buffer.from('{"name": "'), Buffer.from(each), Buffer.from('"}')]);
      for (const [what, request] of [
        ['a NUL in a name', post('{"name": "a\\u0000b"}')],
        ['a raw NUL', post('{"name": "a\0b"}')],
        ['a lone surrogate', post('{"name": "\\ud800"}')],
        ['a lone low surrogate', post('{"name": "a\\udc00b"}')],
        ['surrogates the wrong way round', post('{"name": "\\udc00\\ud800"}')],
        ['an overlong slash', post(bytes(0xc0, 0xaf))],
        ['an overlong NUL', post(bytes(0xc0, 0x80))],
        ['an encoded surrogate', post(bytes(0xed, 0xa0, 0x80))],
        ['beyond Unicode', post(bytes(0xf4, 0x90, 0x80, 0x80))],
        ['half a character', post(bytes(0xf0, 0x9f, 0x98))],
        ['201 characters of four bytes', post(`{"name": "${'😀'.repeat(201)}"}`)],
        ['a class in full-width letters', put('/resource_classes/CUSTOM_%EF%BC%A1')],
        ['a class with a twin by normalisation', put('/resource_classes/CUSTOM_%C3%85')],
        ['a trait with a mark from right to left', put('/traits/CUSTOM_%E2%80%AEA')],
        ['a trait with a NUL', put('/traits/CUSTOM_A%00')],
        ['a trait with a line feed', put('/traits/CUSTOM_A%0A%0A')],
        ['a trait with a space of no width', put('/traits/CUSTOM_%E2%80%8BA')],
        ['a trait with a Kelvin sign', put('/traits/CUSTOM_%E2%84%AA')],
        ['a trait with a dotless i', put('/traits/CUSTOM_%C4%B1')],
        [
          'digits of other scripts for a limit',
          lines('GET /allocation_candidates?resources=VCPU:1&limit=%D9%A1x HTTP/1.1', ...goodHeaders),
        ],
        ['a NUL in a query', lines('GET /resource_providers?uuid=%00 HTTP/1.1', ...goodHeaders)],
        ['an overlong slash in a path', lines('GET /resource_providers%c0%af HTTP/1.1', ...goodHeaders)],
        ['an escaped slash', lines('GET /%2fresource_providers HTTP/1.1', ...goodHeaders)],
        ['half an escape', lines('GET /resource_providers/%e HTTP/1.1', ...goodHeaders)],
        ['an escape of an escape', lines('GET /resource_providers/%252e%252e/traits HTTP/1.1', ...goodHeaders)],
        ['parents of the root', lines('GET /../../etc/passwd HTTP/1.1', ...goodHeaders)],
        ['escaped parents', lines('GET /traits/%2e%2e/%2e%2e/etc/passwd HTTP/1.1', ...goodHeaders)],
        ['backslashes', lines('GET /..\\..\\etc\\passwd HTTP/1.1', ...goodHeaders)],
        [
          'a UUID with a mark',
          lines('GET /resource_providers/%E2%80%8F8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11 HTTP/1.1', ...goodHeaders),
        ],
        [
          'a UUID with full-width digits',
          lines('GET /resource_providers/%EF%BC%98ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11 HTTP/1.1', ...goodHeaders),
        ],
        [
          'bytes of Latin-1 in a version',
          Buffer.from(
            lines('GET /traits HTTP/1.1', ...goodHeaders.map((line) => line.replace('1.39', '1.\u00b9'))),
            'latin1',
          ),
        ],
        ['__proto__', post('{"name": "a", "__proto__": {"uuid": "b"}}')],
        [
          'the prototype of objects',
          post(
            '{"allocations": {"__proto__": {"resources": {"constructor": 1}}}, "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "A"}',
            '/allocations/1b1d3c4e-1111-4222-8333-444455556666',
            'PUT',
          ),
        ],
      ] as const) {
        await isRefused(server, what, request);
        assert.equal(await server.status('/resource_providers'), 200, what);
      }
    }));

  test('that come slowly, or whose answers are not taken, are cut', () =>
    withHostileServer(async (server) => {
      const trickle = (text: string) => Array.from({ length: 100 }, (_, place) => text.charAt(place) || 'a');
      const slowly = { pauseMs: 100 };
      const [silent, headers, body, chunks] = await Promise.all([
        server.send(['']),
        server.send([...trickle('GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')], slowly),
        server.send([head('Content-Length: 100'), ...trickle('{"name": "slow')], slowly),
        server.send([head('Transfer-Encoding: chunked'), ...trickle('').map(() => '1\r\na\r\n')], slowly),
      ]);
      for (const [what, { statuses, closed }] of Object.entries({ silent, headers, body, chunks })) {
        assert.ok(closed, `${what} is cut`);
        assert.deepEqual(statuses, [408], what);
      }
      // The body ends in the middle, and the client goes.
      const half = net.connect(server.port, '127.0.0.1');
      half.write(`${head('Content-Length: 100')}{"name": "half`);
      await new Promise((resolve) => setTimeout(resolve, 50));
      half.destroy();

      // A client that asks for much and reads nothing of it.
      const deaf = net.connect(server.port, '127.0.0.1');
      deaf.on('error', () => {}).pause();
      const request = lines('GET /traits HTTP/1.1', ...goodHeaders.slice(0, 3));
      const isCut = new Promise<void>((resolve) => deaf.once('close', () => resolve()));
      for (let count = 0; count < 2_000; count += 1) deaf.write(request);
      // What fills both ends of the connection waits; the answers behind it are cut, which a client that reads later sees.
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      deaf.resume();
      const late = setTimeout(() => deaf.destroy(new Error('It was not cut.')), 10_000);
      let failure: Error | undefined;
      deaf.on('error', (error) => {
        failure = error;
      });
      await isCut;
      clearTimeout(late);
      assert.ok(!failure?.message.includes('not cut'), String(failure));
      assert.equal(await server.status('/resource_providers'), 200);
    }));

  test('without a token cost no more than their length', () =>
    withHostileServer(async (server) => {
      const long = 100_000;
      const spaces = ' '.repeat(long);
      const headers: readonly (readonly [what: string, header: string])[] = [
        ['spaces in Accept', `Accept: a/b,${spaces}@`],
        ['parameters in Accept', `Accept: a/b${';a=b'.repeat(long / 4)}@`],
        ['quotes in Accept', `Accept: a/b${';a="\\"'.repeat(long / 6)}`],
        ['spaces before a weight', `Accept: a/b${spaces};q=2`],
        ['commas in Accept', `Accept: ${','.repeat(long)}`],
        ['ranges in Accept', `Accept: ${'a/b,'.repeat(long / 4)}`],
        ['a long Content-Type', `Content-Type: ${'<'.repeat(long)}`],
        ['a long version', `OpenStack-API-Version: ${'placement '.repeat(long / 10)}`],
        ['many versions', `OpenStack-API-Version: ${'placement 1.1,'.repeat(long / 14)}x`],
        ['a long older version', `X-OpenStack-Placement-API-Version: 1.1${spaces}x`],
        ['a long request id', `X-OpenStack-Request-Id: req-${'a'.repeat(long)}`],
        ['a long If-Match', `If-Match: ${'"a",'.repeat(long / 4)}@`],
        ['slashes in a prefix', `X-Forwarded-Prefix: ${'/'.repeat(long)}x`],
        ['a long Forwarded', `Forwarded: ${'for="a;'.repeat(long / 7)}`],
      ];
      const targets: readonly (readonly [what: string, target: string])[] = [
        ['slashes', '/'.repeat(long)],
        ['escapes', `/${'%41'.repeat(long / 3)}`],
        ['half escapes', `/${'%'.repeat(long)}`],
        ['dots', '/..'.repeat(long / 3)],
        ['line feeds', `/${'%0A'.repeat(long / 3)}x`],
        ['question marks', `/${'?'.repeat(long)}`],
        ['hashes', `/?${'%23'.repeat(long / 3)}`],
      ];
      for (const token of [[], ['X-Auth-Token: admin']]) {
        const rest = ['Host: localhost', 'Connection: close', ...token];
        const requests = [
          ...headers.map(([what, header]) => [what, lines('GET /nowhere HTTP/1.1', header, ...rest)] as const),
          ...headers.map(
            ([what, header]) => [what, lines('POST /resource_providers HTTP/1.1', header, ...rest)] as const,
          ),
          ...targets.map(([what, target]) => [what, lines(`GET ${target} HTTP/1.1`, ...rest)] as const),
        ];
        for (const [what, request] of requests) {
          const started = performance.now();
          const { closed, statuses } = await server.send(request, { patienceMs: 20_000 });
          assert.ok(closed && statuses.every((status) => status < 500), `${what}: ${statuses}`);
          // In proportion it is milliseconds; in proportion to the square it would be many seconds.
          assert.ok(performance.now() - started < 2_500, `${what} took ${performance.now() - started} ms`);
        }
      }
    }));
});
