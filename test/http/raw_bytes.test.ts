/** Requests that gabbi files cannot send: bodies that are not UTF-8, the same header twice, and very long queries. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine } from '../support/engines.ts';
import { openTestService } from '../support/services.ts';

let service: PlacementService;
before(async () => {
  service = await openTestService(anyEngine);
});
after(() => service.close());

const json = '{"name": "a"}';

function request(path: string, init: RequestInit & { readonly headers?: [string, string][] } = {}): Promise<Response> {
  const headers: [string, string][] = [['x-auth-token', 'admin'], ...(init.headers ?? [])];
  return Promise.resolve(service.app.request(`http://localhost${path}`, { ...init, headers }));
}

for (const [what, body] of [
  ['UTF-16 with a mark of its byte order', Buffer.from(`\ufeff${json}`, 'utf16le')],
  ['UTF-16 without one', Buffer.from(json, 'utf16le')],
  ['Latin-1', Buffer.from('{"name": "café"}', 'latin1')],
  ['half a character', Buffer.from(json).fill(0xc3, 10, 11)],
  [
    'an encoded surrogate',
    Buffer.concat([Buffer.from('{"name": "'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
  ],
  [
    'a character in more bytes than it needs',
    Buffer.concat([Buffer.from('{"name": "'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')]),
  ],
] as const) {
  test(`a body that is ${what} is refused`, async () => {
    const headers: [string, string][] = [
      ['content-type', 'application/json'],
      ['content-length', `${body.length}`],
    ];
    const response = await request('/resource_providers', { method: 'POST', body, headers });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /Malformed JSON/);
  });
}

test('the last of two version headers counts', async () => {
  const headers: [string, string][] = [
    ['openstack-api-version', 'placement 1.10'],
    ['openstack-api-version', 'compute 2.90'],
    ['openstack-api-version', 'placement 1.11'],
  ];
  const response = await request('/resource_providers', { headers });
  assert.equal(response.headers.get('openstack-api-version'), 'placement 1.11');
});

test('a query of sixty kibibytes is accepted', async () => {
  const uuid = '10000000-0000-4000-8000-000000000001';
  const headers: [string, string][] = [['openstack-api-version', 'placement 1.39']];
  const query = `member_of=in:${Array(1650).fill(uuid).join(',')}`;
  const response = await request(`/resource_providers?${query}`, { headers });
  assert.deepEqual([response.status, await response.json()], [200, { resource_providers: [] }]);
});
