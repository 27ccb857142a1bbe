/**
 * The contract accepts good exchanges and reports bad ones, just before and after each change between microversions.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHILD, CONSUMER, complaints, error, links, PROVIDER, type Sample } from './sample.ts';

function accepts(minor: number, line: string, sample: Sample): void {
  assert.deepEqual(complaints(minor, line, sample), []);
}

function refuses(minor: number, line: string, sample: Sample, complaint: RegExp): void {
  assert.match(complaints(minor, line, sample).join('\n'), complaint);
}

const dated = (minor: number): boolean => minor >= 15;

function provider(minor: number) {
  const tree = minor >= 14 ? { parent_provider_uuid: null, root_provider_uuid: PROVIDER } : {};
  return { uuid: PROVIDER, name: 'compute-1', generation: 0, links: links(minor), ...tree };
}

test('the fields of a provider and the dates of answers depend on the version', () => {
  const show = `GET /resource_providers/${PROVIDER}`;
  for (let minor = 0; minor <= 39; minor += 1) {
    accepts(minor, show, { status: 200, answer: provider(minor), dated: dated(minor) });
  }
  for (const [before, from] of [
    [0, 1],
    [5, 6],
    [10, 11],
    [13, 14],
  ] as const) {
    refuses(before, show, { status: 200, answer: provider(from), dated: false }, /the body/);
    refuses(from, show, { status: 200, answer: provider(before), dated: false }, /the body/);
  }
  refuses(
    14,
    show,
    { status: 200, answer: provider(14), dated: true },
    /header (cache-control|last-modified) does not/,
  );
  refuses(15, show, { status: 200, answer: provider(15), dated: false }, /header last-modified is missing/);
  refuses(
    39,
    show,
    { status: 200, answer: { ...provider(39), extra: 1 }, dated: true },
    /additional properties \(extra\)/,
  );
});

test('creating a provider answers 201 up to 1.19, and 200 with the provider from 1.20', () => {
  const created = { body: { name: 'compute-1' }, location: `/resource_providers/${PROVIDER}` };
  accepts(19, 'POST /resource_providers', { ...created, status: 201 });
  accepts(20, 'POST /resource_providers', { ...created, status: 200, answer: provider(20), dated: true });
  refuses(20, 'POST /resource_providers', { ...created, status: 201 }, /status is not one of/);
  refuses(19, 'POST /resource_providers', { ...created, status: 200, answer: provider(19) }, /status is not one of/);
  refuses(19, 'POST /resource_providers', { ...created, status: 201, location: '/elsewhere' }, /header location/);
  const child = { ...created, body: { name: 'numa-0', parent_provider_uuid: PROVIDER }, status: 201 };
  accepts(14, 'POST /resource_providers', child);
  refuses(13, 'POST /resource_providers', child, /request's body.*parent_provider_uuid/);
  const moved = { body: { name: 'compute-1', parent_provider_uuid: null }, status: 200 };
  accepts(14, `PUT /resource_providers/${PROVIDER}`, { ...moved, answer: provider(14) });
  refuses(13, `PUT /resource_providers/${PROVIDER}`, { ...moved, answer: provider(13) }, /parent_provider_uuid/);
});

test('allocations of a provider show consumer generations from 1.28', () => {
  const line = `GET /resource_providers/${PROVIDER}/allocations`;
  const shown = (more: object) => ({
    status: 200,
    answer: { resource_provider_generation: 2, allocations: { [CONSUMER]: { resources: { VCPU: 1 }, ...more } } },
    dated: true,
  });
  accepts(27, line, shown({}));
  accepts(28, line, shown({ consumer_generation: 1 }));
  refuses(27, line, shown({ consumer_generation: 1 }), /consumer_generation/);
  refuses(28, line, shown({}), /consumer_generation/);
});

test('each provider filter is allowed from its version on', () => {
  const found = (minor: number): Sample => ({ status: 200, answer: { resource_providers: [] }, dated: dated(minor) });
  const query = (minor: number, text: string) => complaints(minor, `GET /resource_providers?${text}`, found(minor));
  for (const [first, text] of [
    [3, `member_of=in:${PROVIDER},${CHILD}`],
    [4, 'resources=VCPU:2,MEMORY_MB:%201_024'],
    [14, `in_tree=${PROVIDER}`],
    [18, 'required=HW_CPU_X86_AVX2,STORAGE_DISK_SSD'],
    [22, 'required=HW_CPU_X86_AVX2,!STORAGE_DISK_SSD'],
    [24, `member_of=${PROVIDER}&member_of=${CHILD}`],
    [32, `member_of=!in:${PROVIDER},${CHILD}`],
    [39, 'required=!CUSTOM_SLOW&required=in:HW_CPU_X86_AVX2,STORAGE_DISK_SSD'],
  ] as const) {
    assert.deepEqual(query(first, text), [], `${text} at 1.${first}`);
    assert.notDeepEqual(query(first - 1, text), [], `${text} at 1.${first - 1}`);
  }
  for (const text of ['nosuch=1', 'resources=VCPU', 'resources=VCPU:0', `member_of=${PROVIDER},${CHILD}`, 'uuid=x']) {
    assert.notDeepEqual(query(39, text), [], text);
  }
});

test('groups of a candidates query are numbered from 1.25 and named from 1.33', () => {
  const none = { allocation_requests: [], provider_summaries: {} };
  const query = (minor: number, text: string) =>
    complaints(minor, `GET /allocation_candidates?${text}`, { status: 200, answer: none, dated: dated(minor) });
  for (const [first, text] of [
    [10, 'resources=VCPU:1'],
    [16, 'resources=VCPU:1&limit=5'],
    [17, 'resources=VCPU:1&required=HW_CPU_X86_AVX2'],
    [21, `resources=VCPU:1&member_of=${PROVIDER}`],
    [25, 'resources=VCPU:1&resources1=VCPU:1'],
    [25, 'resources=VCPU:1&required1=HW_CPU_X86_AVX2'],
    [25, `resources=VCPU:1&member_of1=${PROVIDER}`],
    [25, 'resources=VCPU:1&group_policy=none'],
    [31, `resources=VCPU:1&in_tree=${PROVIDER}`],
    [31, `resources=VCPU:1&in_tree1=${PROVIDER}`],
    [33, 'resources=VCPU:1&resources_NET-0=VCPU:1'],
    [33, 'resources=VCPU:1&required_NET-0=HW_CPU_X86_AVX2'],
    [33, `resources=VCPU:1&member_of_NET-0=${PROVIDER}`],
    [33, `resources=VCPU:1&in_tree_NET-0=${PROVIDER}`],
    [35, 'resources=VCPU:1&root_required=HW_CPU_X86_AVX2,!STORAGE_DISK_SSD'],
    [36, 'resources1=VCPU:1&required2=CUSTOM_X&same_subtree=1,2&group_policy=isolate'],
    [39, 'resources_A=VCPU:1&required_A=in:HW_CPU_X86_AVX2,CUSTOM_X'],
  ] as const) {
    for (let minor = 10; minor <= 39; minor += 1) {
      assert.equal(query(minor, text).length === 0, minor >= first, `${text} at 1.${minor}`);
    }
  }
  assert.match(query(24, '').join(), /resources is missing/);
  assert.deepEqual(query(25, 'resources1=VCPU:1'), []);
  for (const text of ['limit=0', 'limit=05', 'group_policy=some', 'resources0=VCPU:1', 'same_subtree=', 'foo=1']) {
    assert.notDeepEqual(query(text.startsWith('resources0') ? 32 : 39, `resources=VCPU:1&${text}`), [], text);
  }
  const twice = 'resources=VCPU:1&root_required=A&root_required=B';
  assert.match(query(39, twice).join(), /root_required/);
});

function candidates(minor: number) {
  const resources = { VCPU: 1 };
  const request =
    minor < 12
      ? { allocations: [{ resource_provider: { uuid: PROVIDER }, resources }] }
      : { allocations: { [PROVIDER]: { resources } }, ...(minor >= 34 ? { mappings: { '': [PROVIDER] } } : {}) };
  const summary = {
    resources: { VCPU: { capacity: 8, used: 0 } },
    ...(minor >= 17 ? { traits: ['HW_CPU_X86_AVX2'] } : {}),
    ...(minor >= 29 ? { parent_provider_uuid: null, root_provider_uuid: PROVIDER } : {}),
  };
  return { allocation_requests: [request], provider_summaries: { [PROVIDER]: summary } };
}

test('candidates have five different forms over the versions', () => {
  const answered = (minor: number, shape: number) =>
    complaints(minor, 'GET /allocation_candidates?resources=VCPU:1', {
      status: 200,
      answer: candidates(shape),
      dated: dated(minor),
    });
  for (let minor = 10; minor <= 39; minor += 1) assert.deepEqual(answered(minor, minor), [], `1.${minor}`);
  for (const first of [12, 17, 29, 34]) {
    assert.notDeepEqual(answered(first, first - 1), [], `the shape of 1.${first - 1} at 1.${first}`);
    assert.notDeepEqual(answered(first - 1, first), [], `the shape of 1.${first} at 1.${first - 1}`);
  }
});

test('an operation that a version does not have gives 404, and deleting all inventories gives 405', () => {
  const candidatesLine = 'GET /allocation_candidates?resources=VCPU:1';
  accepts(9, candidatesLine, { status: 404, answer: error(9, 404) });
  refuses(10, candidatesLine, { status: 404, answer: error(10, 404) }, /status is not one of/);
  refuses(9, candidatesLine, { status: 200, answer: candidates(10) }, /status is not one of/);
  const all = `DELETE /resource_providers/${PROVIDER}/inventories`;
  accepts(4, all, { status: 405, answer: error(4, 405) });
  refuses(4, all, { status: 404, answer: error(4, 404) }, /status is not one of/);
  accepts(5, all, { status: 204 });
  refuses(5, all, { status: 405, answer: error(5, 405) }, /status is not one of/);
  accepts(39, 'PATCH /traits', { status: 405, answer: error(39, 405), response: { allow: 'GET' } });
  refuses(39, 'PATCH /traits', { status: 405, answer: error(39, 405) }, /header allow is missing/);
  accepts(39, 'GET /nosuch', { status: 404, answer: error(39, 404), response: { vary: undefined } });
  refuses(39, 'GET /nosuch', { status: 200, answer: {} }, /status is not one of/);
});

test('usages of a project are grouped by consumer type from 1.38', () => {
  const sums = { usages: { VCPU: 2 } };
  const grouped = { usages: { INSTANCE: { consumer_count: 1, VCPU: 2 }, unknown: { consumer_count: 0 } } };
  accepts(9, 'GET /usages?project_id=p', { status: 200, answer: sums });
  accepts(38, 'GET /usages?project_id=p&consumer_type=all', { status: 200, answer: grouped, dated: true });
  refuses(37, 'GET /usages?project_id=p', { status: 200, answer: grouped, dated: true }, /the body/);
  refuses(38, 'GET /usages?project_id=p', { status: 200, answer: sums, dated: true }, /the body/);
  refuses(
    37,
    'GET /usages?project_id=p&consumer_type=all',
    { status: 200, answer: sums, dated: true },
    /consumer_type/,
  );
  refuses(9, 'GET /usages?user_id=u', { status: 200, answer: sums }, /project_id is missing/);
});

test('PUT of a resource class renames up to 1.6 and creates from 1.7', () => {
  const line = 'PUT /resource_classes/CUSTOM_A';
  const renamed = { name: 'CUSTOM_B', links: [{ rel: 'self', href: '/resource_classes/CUSTOM_B' }] };
  accepts(6, line, { body: { name: 'CUSTOM_B' }, status: 200, answer: renamed });
  refuses(6, line, { status: 200, answer: renamed }, /Content-Type is missing/);
  refuses(
    6,
    line,
    { body: { name: 'CUSTOM_B' }, status: 204, location: '/resource_classes/CUSTOM_A' },
    /is not one of/,
  );
  refuses(
    6,
    line,
    { body: { name: 'CUSTOM_B' }, status: 201, location: '/resource_classes/CUSTOM_A' },
    /is not one of/,
  );
  accepts(7, line, { status: 201, location: '/resource_classes/CUSTOM_A' });
  accepts(7, line, { body: 'ignored', status: 204, location: '/resource_classes/CUSTOM_A' });
  refuses(7, line, { status: 204 }, /header location is missing/);
  refuses(7, line, { body: { name: 'CUSTOM_B' }, status: 200, answer: renamed }, /status is not one of/);
  refuses(7, 'PUT /resource_classes/VCPU', { status: 204, location: '/resource_classes/CUSTOM_A' }, /in the path/);
});

test('an optional part may be missing, and below its version it must be missing', () => {
  const inventories = { resource_provider_generation: 0, inventories: {} };
  const line = `GET /resource_providers/${PROVIDER}/inventories`;
  accepts(14, line, { status: 200, answer: inventories });
  accepts(15, line, { status: 200, answer: inventories, dated: true });
  accepts(15, line, { status: 200, answer: inventories, dated: true, response: { 'last-modified': undefined } });
  refuses(14, line, { status: 200, answer: inventories, dated: true }, /header last-modified does not belong/);
  const rename = { body: { name: 'CUSTOM_B' }, status: 409 };
  accepts(6, 'PUT /resource_classes/CUSTOM_A', { ...rename, answer: error(6, 409) });
  refuses(7, 'PUT /resource_classes/CUSTOM_A', { ...rename, answer: error(7, 409) }, /status is not one of/);
});

test('aggregates have the generation from 1.19', () => {
  const line = `PUT /resource_providers/${PROVIDER}/aggregates`;
  const bare = { aggregates: [CONSUMER] };
  const guarded = { ...bare, resource_provider_generation: 1 };
  accepts(1, line, { body: [CONSUMER], status: 200, answer: bare });
  accepts(18, line, { body: [CONSUMER], status: 200, answer: bare, dated: true });
  accepts(19, line, { body: guarded, status: 200, answer: guarded, dated: true });
  refuses(19, line, { body: [CONSUMER], status: 200, answer: guarded, dated: true }, /request's body/);
  refuses(18, line, { body: guarded, status: 200, answer: bare, dated: true }, /request's body/);
  refuses(19, line, { body: guarded, status: 200, answer: bare, dated: true }, /resource_provider_generation/);
});

test('a request that is not valid HTTP is refused without a version', () => {
  const line = 'POST /resource_providers';
  const refused = {
    status: 400,
    answer: error(0, 400),
    response: { 'openstack-api-version': undefined, vary: undefined },
  };
  accepts(39, line, { ...refused, request: { 'Content-Length': 'many' } });
  refuses(39, line, { ...refused, request: { 'Content-Length': '4' } }, /openstack-api-version is missing/);
});
