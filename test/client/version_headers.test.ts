import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { newestVersion } from '../support/requests.ts';
import { openTestService } from '../support/services.ts';

let service: Awaited<ReturnType<typeof openTestService>>;
before(async () => {
  service = await openTestService(anyEngine);
});
after(() => service.close());

const ask = (headers: Record<string, string>, path = '/traits', init: RequestInit = {}) =>
  service.app.request(path, { ...init, headers: { 'x-auth-token': 'admin', ...headers } });
const headersOf = ({ headers }: Response) => [
  headers.get('openstack-api-version'),
  headers.get('openstack-api-minimum-version'),
  headers.get('openstack-api-maximum-version'),
];
const range = ['placement 1.0', `placement ${newestVersion}`];
const version = 'openstack-api-version';
const older = 'x-openstack-placement-api-version';

test('answers have the range of versions: successes, refusals, and 406 for a version outside of it', async () => {
  assert.deepEqual(headersOf(await ask({ [version]: 'placement 1.10' })), ['placement 1.10', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/')), ['placement 1.0', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/nothing')), ['placement 1.0', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/traits', { method: 'DELETE' })), ['placement 1.0', ...range]);
  for (const wrong of ['placement 1.999', 'placement 2.0']) {
    const answer = await ask({ [version]: wrong });
    assert.equal(answer.status, 406);
    assert.deepEqual(headersOf(answer), [null, ...range]);
  }
  const unreadable = await ask({ [version]: 'placement spam' });
  assert.equal(unreadable.status, 400);
  assert.deepEqual(headersOf(unreadable), [null, ...range]);
});

test('the older header names a version too, and an invalid value is ignored', async () => {
  for (const [value, spoken] of [
    ['1.10', 'placement 1.10'],
    ['latest', `placement ${newestVersion}`],
    ['', 'placement 1.0'],
    ['spam', 'placement 1.0'],
  ] as const) {
    assert.equal(headersOf(await ask({ [older]: value }, '/resource_providers'))[0], spoken);
  }
  assert.equal((await ask({ [older]: '1.999' })).status, 406);
});

test('the standard header wins over the older one, unless it names only other services', async () => {
  const spoken = async (standard: string) =>
    headersOf(await ask({ [version]: standard, [older]: '1.20' }, '/resource_providers'))[0];
  assert.equal(await spoken('placement 1.10'), 'placement 1.10');
  assert.equal(await spoken('compute 2.90, placement 1.11'), 'placement 1.11');
  assert.equal(await spoken('compute 2.90'), 'placement 1.20');
});
