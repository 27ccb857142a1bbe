import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonPathValue } from './jsonpath.ts';

const json = {
  name: 'top',
  empty: null,
  'with-dash': 1,
  list: [3, 1, 2],
  words: ['b', 'B', 'a'],
  links: [
    { rel: 'self', href: '/self' },
    { rel: 'traits', href: '/traits' },
  ],
  requests: [
    {
      allocations: { 'a.b': { resources: { VCPU: 1 } }, c: { resources: { VCPU: 7, DISK_GB: 2 } } },
      mappings: { '': ['x'] },
    },
    { allocations: { 'a.b': { resources: { VCPU: 2 } } }, mappings: { '': ['y', 'z'], _NET: [] } },
  ],
};

for (const [path, expected] of [
  ['$', json],
  ['name', 'top'],
  ['$.name', 'top'],
  ['$.empty', null],
  ['$.with-dash', 1],
  ['$.list[0]', 3],
  ['$.list[-1]', 2],
  ['$.list[*]', [3, 1, 2]],
  ['$.list[1:]', [1, 2]],
  ['$.list.`len`', 3],
  ['$.name.`len`', 3],
  ['$.`len`', 7],
  ['$.list.`sorted`', [1, 2, 3]],
  ['$.words.`sorted`', ['B', 'a', 'b']],
  ['$.requests[0].allocations.`sorted`', ['a.b', 'c']],
  ['$.links[?rel = "traits"].href', '/traits'],
  ["$.links[?rel='traits'].href", '/traits'],
  ['$.links[?rel = traits & href = "/traits"].href', '/traits'],
  ['$.links[?rel != "self"].href', '/traits'],
  ['$.links[?rel ~ "tr.*s"].href', '/traits'],
  ['$.requests[0].allocations["a.b"].resources.VCPU', 1],
  ["$.requests[0].allocations.['a.b'].resources[VCPU]", 1],
  ['$.requests[0].allocations."a.b".resources["VCPU"]', 1],
  ['requests[1].mappings[""]', ['y', 'z']],
  ["$.requests[1].mappings[''][1]", 'z'],
  ["$.requests[1].mappings[''].`len`", 2],
  ['$.requests[1].mappings._NET', []],
  ['$.requests..allocations["a.b"].resources[VCPU]', [1, 2]],
  ['$.requests..allocations.c.resources', { VCPU: 7, DISK_GB: 2 }],
  ['$.requests..mappings.`len`', [1, 2]],
  ['$..VCPU', [1, 7, 2]],
  ["$.requests[?(allocations.'a.b'.resources.VCPU<=1)]..allocations['a.b'].resources.VCPU", 1],
  ["$.requests[?(allocations.'a.b'.resources.VCPU>1)].mappings[''][0]", 'y'],
] as const) {
  test(`${path} is found`, () => {
    assert.deepEqual(jsonPathValue(json, path), expected);
  });
}

for (const path of [
  '$.nothing',
  '$.name.more',
  '$.list[3]',
  '$.list["0x"]',
  '$.empty.`len`',
  '$.links[?rel = "other"].href',
  '$.links[?other].href',
  '$.requests[0].allocations["a"]',
  '$.requests[0].allocations[?c = 1]',
  '$..GPU',
]) {
  test(`${path} is not found`, () => {
    assert.throws(() => jsonPathValue(json, path), /is not in/);
  });
}

for (const path of ['$.list[', '$.list[?', '$.list[?a = ]', '$.name extra', '$.list.`parent`', '$..', '[/name]']) {
  test(`${path} cannot be parsed`, () => {
    assert.throws(() => jsonPathValue(json, path), /is not understood from/);
  });
}

test('without JSON no path is found', () => {
  assert.throws(() => jsonPathValue(undefined, '$'), /there is no JSON/);
});
