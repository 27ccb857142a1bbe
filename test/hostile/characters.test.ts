/** Characters that look like other characters, or have special effects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goodHeaders, isRefused, lines, post, withHostileServer } from './server.ts';

test('requests with dangerous characters are refused', () =>
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
