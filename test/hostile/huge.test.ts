/** Requests with an excessive size, depth or number of parts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goodHeaders, head, host, isRefused, lines, post, withHostileServer } from './server.ts';

test('requests that are huge or deeply nested are refused', () =>
  withHostileServer(async (server) => {
    const deep = (open: string, inside: string, close: string, levels: number) =>
      open.repeat(levels) + inside + close.repeat(levels);
    const group = (number: number) => `resources${number}=VCPU:1`;
    const many = (count: number, each: (index: number) => string, by = '&') =>
      Array.from({ length: count }, (_, index) => each(index)).join(by);
    for (const [what, request] of [
      ['a long target', lines(`GET /${'a'.repeat(200_000)} HTTP/1.1`, ...goodHeaders)],
      ['a long header', lines('GET /nowhere HTTP/1.1', `X-Long: ${'a'.repeat(200_000)}`, ...goodHeaders)],
      ['many headers', lines('GET /nowhere HTTP/1.1', ...Array.from({ length: 20_000 }, (_, n) => `X-${n}: a`))],
      ['a long body', post(`{"name": "${'a'.repeat(200_000)}"}`)],
      ['a body with a very large declared length', head('Content-Length: 9007199254740991')],
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
          `/resource_providers/${host}/traits`,
          'PUT',
        ),
      ],
      [
        'nested inventories',
        post(
          `{"resource_provider_generation": 0, "inventories": ${deep('{"VCPU":', '1', '}', 12_000)}}`,
          `/resource_providers/${host}/inventories`,
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
          `/resource_providers/${host}/aggregates`,
          'PUT',
        ),
      ],
      ['10,000 unknown keys', post(`{${many(10_000, (n) => `"${n}":1`, ',')}}`)],
      [
        'a number of 100,000 digits',
        post(
          `{"resource_provider_generation": ${'9'.repeat(100_000)}, "traits": []}`,
          `/resource_providers/${host}/traits`,
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

test('1,000 headers are accepted, and a request with more is refused with the limit', () =>
  withHostileServer(async (server) => {
    const request = (count: number) =>
      lines(
        'GET /resource_providers HTTP/1.1',
        ...goodHeaders,
        ...Array.from({ length: count - goodHeaders.length }, (_, index) => `X-${index}: a`),
      );
    assert.deepEqual((await server.send(request(1000))).statuses, [200]);
    const { statuses, text } = await server.send(request(1001));
    assert.deepEqual(statuses, [431]);
    assert.match(text, /there may be 1000 headers/);
  }));
