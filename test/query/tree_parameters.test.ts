import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import { since } from '../../src/placement/microversions.ts';
import { ApiError } from '../../src/request/errors.ts';
import { parseQuery } from '../../src/rest/query_string.ts';

const a = '0e6f3a4c-9f2f-4f6e-9f35-0a3d6cbd2f01';
const b = '2b5ef0c5-54a3-4f27-a30c-4a1f8a3e9b02';

const parse = (query: string, version: number = since.placing) => {
  const { order, apartFrom, with: together } = parseCandidateRequest(parseQuery(`resources=VCPU:1&${query}`), version);
  return { order, apartFrom, with: together };
};

test('blanks around the suffixes of same_subtree are those of Python, as in upstream', () => {
  const groups = 'resources_A=VCPU:1&resources_B=VCPU:1&group_policy=none';
  const parseSubtree = (value: string) => parseCandidateRequest(parseQuery(`${groups}&same_subtree=${value}`), 1036);
  assert.deepEqual(parseSubtree('%1F_A%20,%C2%85_B').sameSubtrees, [new Set(['_A', '_B'])]);
  assert.throws(() => parseSubtree('_A,%EF%BB%BF_B'), ApiError, 'a byte order mark is no blank');
});

suite('order, apart_from and with', () => {
  const parsed = [
    ['', {}],
    ['order=free:VCPU', { order: [{ kind: 'free', className: 'VCPU', mostFirst: false }] }],
    [
      'order=prefer:HW_X, -free:CUSTOM_A,random',
      {
        order: [
          { kind: 'prefer', traitName: 'HW_X' },
          { kind: 'free', className: 'CUSTOM_A', mostFirst: true },
          { kind: 'random' },
        ],
      },
    ],
    [`apart_from=${a},${b},${a}&with=${b}, ${'0'.repeat(32)}`, { apartFrom: [a, b], with: [b, '0'.repeat(32)] }],
  ] as const;
  for (const [query, expected] of parsed) {
    test(`"${query}" is read`, () =>
      assert.deepEqual(parse(query), { order: [], apartFrom: [], with: [], ...expected }));
  }

  const refused = [
    ['order=', /'order'.*Got an empty key in: $/],
    ['order=free:VCPU,', /'order'.*Got an empty key in: free:VCPU,$/],
    ['order=free', /'order'.*free:VCPU, -free:VCPU, prefer:HW_CPU_X86_VMX and random\. Got free$/],
    ['order=free:', /'order'.*Got free:$/],
    ['order=-prefer:HW_X', /'order'.*Got -prefer:HW_X$/],
    ['order=used:VCPU', /'order'.*Got used:VCPU$/],
    ['order=Random', /'order'.*Got Random$/],
    [`order=${Array(9).fill('free:VCPU')}`, /'order'.*at most 8 keys. Got 9 keys/],
    ['order=random&order=free:VCPU', /'order' may be specified only once/],
    ['apart_from=', /'apart_from'.*Got an empty UUID in: $/],
    [`apart_from=${a},x`, /'apart_from'.*Got x$/],
    [`apart_from=${a}&apart_from=${b}`, /'apart_from' may be specified only once/],
    [`with=${a},,${b}`, /'with'.*Got an empty UUID in: 0e6f/],
    ['with=x', /'with'.*Got x$/],
    [`with=${a}&with=${a}`, /'with' may be specified only once/],
    [`with=${a}&apart_from=${b},${a.toUpperCase()}`, /'apart_from' excludes every consumer that 'with' names: 0e6f/],
    ['order1=random', /order1/],
    [`with_A=${a}`, /with_A/],
  ] as const;
  for (const [query, expected] of refused) {
    test(`"${query}" is refused`, () =>
      assert.throws(
        () => parse(query),
        (error) => error instanceof ApiError && error.status === 400 && expected.test(error.message),
      ));
  }

  for (const query of ['order=random', `with=${a}`, `apart_from=${a}`]) {
    test(`"${query}" is an unknown parameter below 2.4`, () =>
      assert.throws(() => parse(query, since.placing - 1), /does not match any of the regexes/));
  }
});
