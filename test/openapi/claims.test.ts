/** The contract of claims: each body format, and the errors that clients react to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHILD, CONSUMER, complaints, error, PROVIDER } from './sample.ts';

const owner = { project_id: 'p', user_id: 'u' };
const resources = { VCPU: 1 };

/** The body of PUT /allocations/{consumer_uuid} at 1.`minor`. */
function claim(minor: number) {
  const whose = minor >= 8 ? owner : {};
  if (minor < 12) return { allocations: [{ resource_provider: { uuid: PROVIDER }, resources }], ...whose };
  return {
    allocations: { [PROVIDER]: { resources } },
    ...whose,
    ...(minor >= 28 ? { consumer_generation: null } : {}),
    ...(minor >= 38 ? { consumer_type: 'INSTANCE' } : {}),
  };
}

const put = (minor: number, body: unknown): readonly string[] =>
  complaints(minor, `PUT /allocations/${CONSUMER}`, { body, status: 204 });
const post = (minor: number, body: unknown): readonly string[] =>
  complaints(minor, 'POST /allocations', { body, status: 204 });

test('a claim is accepted in the format of its version, but not in that of the version before or after', () => {
  for (let minor = 0; minor <= 39; minor += 1) assert.deepEqual(put(minor, claim(minor)), [], `1.${minor}`);
  for (const first of [8, 12, 28, 38]) {
    assert.notDeepEqual(put(first, claim(first - 1)), [], `the format of 1.${first - 1} at 1.${first}`);
    assert.notDeepEqual(put(first - 1, claim(first)), [], `the format of 1.${first} at 1.${first - 1}`);
  }
});

test('mappings are optional from 1.34', () => {
  const mapped = (minor: number) => ({ ...claim(minor), mappings: { '': [PROVIDER], _NET: [CHILD] } });
  assert.deepEqual(put(34, mapped(34)), []);
  assert.match(put(33, mapped(33)).join(), /mappings/);
  assert.notDeepEqual(put(34, { ...claim(34), mappings: {} }), []);
});

test('an empty claim is allowed for POST from the start, and for PUT from 1.28', () => {
  const empty = (minor: number) => ({ ...claim(minor), allocations: {} });
  assert.notDeepEqual(put(27, empty(27)), []);
  assert.deepEqual(put(28, empty(28)), []);
  for (const minor of [13, 27, 28, 34, 38])
    assert.deepEqual(post(minor, { [CONSUMER]: empty(minor) }), [], `1.${minor}`);
  assert.notDeepEqual(post(38, {}), []);
  assert.notDeepEqual(post(28, { [CONSUMER]: claim(27) }), []);
  assert.notDeepEqual(post(38, { [CONSUMER]: claim(37) }), []);
});

test('amounts are whole and at least one', () => {
  for (const amount of [0, -1, 1.5, '1', true, null]) {
    const body = { ...claim(39), allocations: { [PROVIDER]: { resources: { VCPU: amount } } } };
    assert.notDeepEqual(put(39, body), [], String(amount));
  }
  assert.notDeepEqual(put(39, { ...claim(39), allocations: { [PROVIDER]: { resources: {} } } }), []);
  assert.notDeepEqual(put(39, { ...claim(39), allocations: { [PROVIDER]: { resources: { vcpu: 1 } } } }), []);
});

test('a consumer is shown with its owner from 1.12, its generation from 1.28 and its type from 1.38', () => {
  const held = (minor: number) => ({
    allocations: { [PROVIDER]: { resources, generation: 3 } },
    ...(minor >= 12 ? owner : {}),
    ...(minor >= 28 ? { consumer_generation: 1 } : {}),
    ...(minor >= 38 ? { consumer_type: 'unknown' } : {}),
  });
  const get = (minor: number, answer: unknown) =>
    complaints(minor, `GET /allocations/${CONSUMER}`, { status: 200, answer, dated: minor >= 15 });
  for (let minor = 0; minor <= 39; minor += 1) {
    assert.deepEqual(get(minor, held(minor)), [], `1.${minor}`);
    assert.deepEqual(get(minor, { allocations: {} }), [], `nothing, 1.${minor}`);
  }
  for (const first of [12, 28, 38]) {
    assert.notDeepEqual(get(first, held(first - 1)), []);
    assert.notDeepEqual(get(first - 1, held(first)), []);
  }
  assert.notDeepEqual(get(39, { allocations: {}, ...owner }), []);
});

test('from 1.23 an error has a code that is listed for its status', () => {
  const conflict = (minor: number, answer: unknown) =>
    complaints(minor, `PUT /allocations/${CONSUMER}`, { body: claim(minor), status: 409, answer });
  assert.deepEqual(conflict(22, error(22, 409)), []);
  assert.deepEqual(conflict(23, error(23, 409, 'placement.concurrent_update')), []);
  assert.deepEqual(conflict(23, error(23, 409)), []);
  assert.match(conflict(23, error(22, 409)).join(), /required property 'code'/);
  assert.match(conflict(22, error(23, 409)).join(), /\(code\)/);
  assert.match(conflict(39, error(39, 409, 'placement.inventory.inuse')).join(), /is not one of/);
  assert.match(conflict(39, error(39, 400)).join(), /status in the body is 400/);
  assert.match(conflict(39, error(39, 409, undefined, { request_id: 'req-1' })).join(), /request_id/);
});

test('a version that the service does not have is refused with the range of versions', () => {
  const line = `GET /allocations/${CONSUMER}`;
  const request = { 'OpenStack-API-Version': 'placement 1.999' };
  const response = { 'openstack-api-version': undefined, vary: undefined };
  const spoken = { min_version: '1.0', max_version: '1.39' };
  const refused = { status: 406, request, response };
  assert.deepEqual(complaints(39, line, { ...refused, answer: error(0, 406, undefined, spoken) }), []);
  assert.match(complaints(39, line, { ...refused, answer: error(0, 406) }).join(), /min_version is missing/);
  const silent = { ...refused, response: { ...response, 'openstack-api-maximum-version': undefined } };
  assert.match(complaints(39, line, { ...silent, answer: error(0, 406, undefined, spoken) }).join(), /maximum-version/);
  assert.match(complaints(39, line, { ...refused, answer: error(39, 406, undefined, spoken) }).join(), /the body/);
  const served = { status: 200, answer: { allocations: {} }, dated: true };
  assert.match(complaints(39, line, { ...served, request }).join(), /not served/);
  assert.match(
    complaints(39, line, { ...served, response: { 'openstack-api-version': 'placement 1.38' } }).join(),
    /1\.38/,
  );
  assert.deepEqual(
    complaints(39, line, {
      ...served,
      request: { 'OpenStack-API-Version': 'placement latest' },
    }),
    [],
  );
  const accept = { status: 406, answer: error(39, 406) };
  assert.deepEqual(complaints(39, line, accept), []);
  assert.match(complaints(39, line, { ...accept, answer: error(39, 406, undefined, spoken) }).join(), /the body/);
});

test('without a token the answer is 401 in a different form', () => {
  const request = { 'X-Auth-Token': undefined };
  const range = { 'openstack-api-minimum-version': undefined, 'openstack-api-maximum-version': undefined };
  const response = { 'openstack-api-version': undefined, vary: undefined, ...range };
  const answer = { message: 'Say who you are.', code: '401 Unauthorized', title: 'Unauthorized' };
  const line = `DELETE /allocations/${CONSUMER}`;
  assert.deepEqual(complaints(39, line, { status: 401, answer, request, response }), []);
  assert.match(complaints(39, line, { status: 401, answer, request }).join(), /openstack-api-version does not belong/);
  assert.match(complaints(39, line, { status: 401, answer: error(39, 401), request, response }).join(), /the body/);
  assert.match(complaints(39, line, { status: 204, request }).join(), /no X-Auth-Token/);
  assert.match(complaints(39, line, { status: 204, answer: {} }).join(), /should be none/);
  assert.match(complaints(39, line, { status: 500, answer: error(39, 500) }).join(), /status is not one of/);
});

test('the reshaper takes claims in the format of its version, and inventories', () => {
  const inventories = { [PROVIDER]: { inventories: { VCPU: { total: 8 } }, resource_provider_generation: 1 } };
  const reshape = (minor: number, body: unknown) => complaints(minor, 'POST /reshaper', { body, status: 204 });
  for (const minor of [30, 34, 38]) {
    assert.deepEqual(reshape(minor, { inventories, allocations: { [CONSUMER]: claim(minor) } }), [], `1.${minor}`);
    assert.deepEqual(reshape(minor, { inventories, allocations: {} }), []);
  }
  assert.notDeepEqual(reshape(38, { inventories, allocations: { [CONSUMER]: claim(37) } }), []);
  assert.notDeepEqual(reshape(39, { inventories: {}, allocations: {} }), []);
  assert.notDeepEqual(reshape(29, { inventories, allocations: {} }), []);
  const odd = { [PROVIDER]: { inventories: { vcpu: { total: 8 } }, resource_provider_generation: 1 } };
  assert.notDeepEqual(reshape(39, { inventories: odd, allocations: {} }), []);
});
