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
const range = ['placement 1.0', 'placement 1.39'];
const secondRange = ['placement 2.0', `placement ${newestVersion}`];
const version = 'openstack-api-version';
const older = 'x-openstack-placement-api-version';

test('answers have the range of versions: successes, refusals, and 406 for a version outside of it', async () => {
  assert.deepEqual(headersOf(await ask({ [version]: 'placement 1.10' })), ['placement 1.10', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/')), ['placement 1.0', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/nothing')), ['placement 1.0', ...range]);
  assert.deepEqual(headersOf(await ask({}, '/traits', { method: 'DELETE' })), ['placement 1.0', ...range]);
  assert.deepEqual(headersOf(await ask({ [version]: 'placement 2.3' })), ['placement 2.3', ...secondRange]);
  for (const [wrong, offered, varies] of [
    ['placement 1.40', range, null],
    ['placement 1.999', range, null],
    ['placement 3.0', secondRange, version],
    ['placement 2.999', secondRange, version],
  ] as const) {
    const answer = await ask({ [version]: wrong });
    assert.equal(answer.status, 406);
    assert.deepEqual(headersOf(answer), [null, ...offered]);
    assert.equal(answer.headers.get('vary'), varies);
    const { errors } = (await answer.json()) as { errors: readonly { min_version: string; max_version: string }[] }; // by openapi.yaml
    assert.deepEqual([`placement ${errors[0]?.min_version}`, `placement ${errors[0]?.max_version}`], offered);
  }
  const unreadable = await ask({ [version]: 'placement spam' });
  assert.equal(unreadable.status, 400);
  assert.deepEqual(headersOf(unreadable), [null, ...range]);
});

test('the older header names a version too, and an invalid value is ignored', async () => {
  for (const [value, spoken] of [
    ['1.10', 'placement 1.10'],
    ['latest', 'placement 1.39'],
    ['', 'placement 1.0'],
    ['spam', 'placement 1.0'],
  ] as const) {
    assert.equal(headersOf(await ask({ [older]: value }, '/resource_providers'))[0], spoken);
  }
  assert.equal((await ask({ [older]: '1.999' })).status, 406);
});

test('version 2 needs the name of the service, and the answer shows the header', async () => {
  for (const headers of [{ [version]: '2.3' }, { [older]: '2.3' }, { [version]: 'compute 2.90', [older]: '2.3' }]) {
    const answer = await ask(headers, '/resource_providers');
    assert.equal(answer.status, 400);
    assert.match(
      await answer.text(),
      /Version 2\.3 needs the name of the service\. Send \\"OpenStack-API-Version: placement 2\.3\\"\./,
    );
  }
});

test('a version whose header is refused has the errors of version 2, also where the client accepts no JSON', async () => {
  for (const value of ['2.9', 'placement=2.9', 'placement 2.999', 'placement 2.x']) {
    for (const accept of ['text/html', 'text/event-stream', 'application/json']) {
      const answer = await ask({ [version]: value, accept }, '/resource_providers');
      assert.equal(answer.headers.get('content-type'), 'application/json', `${value}, ${accept}`);
      assert.match(await answer.text(), /"detail":"(Version|Invalid microversion)[^"]*2\./);
      assert.deepEqual(headersOf(answer), [null, ...secondRange]);
      assert.equal(answer.headers.get('vary'), version);
    }
  }
});

test('the standard header wins over the older one, unless it names only other services', async () => {
  const spoken = async (standard: string) =>
    headersOf(await ask({ [version]: standard, [older]: '1.20' }, '/resource_providers'))[0];
  assert.equal(await spoken('placement 1.10'), 'placement 1.10');
  assert.equal(await spoken('compute 2.90, placement 1.11'), 'placement 1.11');
  assert.equal(await spoken('compute 2.90'), 'placement 1.20');
});
