import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { since } from '../../src/placement/microversions.ts';
import { ApiError } from '../../src/request/errors.ts';
import {
  parseInTree,
  parseMemberOf,
  parseQuery,
  parseRequired,
  parseResources,
  parseTraits,
} from '../../src/rest/query_string.ts';
import inTreeTable from './in_tree.json' with { type: 'json' };
import memberOfTable from './member_of.json' with { type: 'json' };
import resourcesTable from './resources.json' with { type: 'json' };
import traitsTable from './traits.json' with { type: 'json' };

/* The tables have the results of the functions of upstream's placement/util.py for these values, on Python 3. */

/** The result of a parser, or the reason of its refusal, in the form of the tables. */
function resultOf(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    assert.ok(error instanceof ApiError && error.status === 400, String(error));
    return { refused: error.message };
  }
}

suite('values of query parameters are read as upstream does', () => {
  for (const { value, result } of resourcesTable) {
    test(`resources=${JSON.stringify(value)}`, () => {
      assert.deepEqual(
        resultOf(() => Object.fromEntries(parseResources(value, since.anyTraits))),
        result,
      );
    });
  }

  for (const { value, allowForbidden, allowAny, result } of traitsTable) {
    const allowed = [...(allowForbidden ? ['forbidden'] : []), ...(allowAny ? ['any'] : [])].join(', ') || 'neither';
    test(`required=${JSON.stringify(value)}, allowed: ${allowed}`, () => {
      const parse = () => {
        const { required, forbidden } = parseTraits(value, { allowForbidden, allowAny, parameter: 'required' });
        return { required: required.map((anyOf) => [...anyOf].sort()), forbidden: [...forbidden].sort() };
      };
      assert.deepEqual(resultOf(parse), result);
    });
  }

  const query = (name: string, ...values: string[]) =>
    parseQuery(values.map((value) => `${name}=${encodeURIComponent(value)}`).join('&'));

  for (const { value, result } of memberOfTable) {
    test(`member_of=${JSON.stringify(value)}`, () => {
      const parse = () => {
        const { required, forbidden } = parseMemberOf(query('member_of', value), '', 1032);
        return { required: [...new Set(required.flat())].sort(), forbidden: [...new Set(forbidden)].sort() };
      };
      assert.deepEqual(resultOf(parse), result);
    });
  }

  for (const { value, result } of inTreeTable) {
    test(`in_tree=${JSON.stringify(value)}`, () =>
      assert.deepEqual(
        resultOf(() => parseInTree(value, 'in_tree', 1039)),
        typeof result === 'string' ? [result] : result,
      ));
  }

  const [a, b] = ['5dd20c24-3e9a-4b6f-9a3c-2a8d6d3c7b11', '9b8b1d0e-7a55-4a55-8a0e-0f2f6f1d2c3a'] as const;

  test('member_of may be repeated from 1.24, and forbidden from 1.32', () => {
    const twice = query('member_of2', a, `in:${a},${b}`);
    assert.throws(() => parseMemberOf(twice, '2', 1023), {
      message: 'Multiple member_of2 parameters are not supported',
    });
    assert.deepEqual(parseMemberOf(twice, '2', 1024), { required: [[a], [a, b]], forbidden: [] });
    const forbidden = query('member_of', `!${a}`, `!in:${a},${b}`);
    assert.throws(() => parseMemberOf(forbidden, '', 1031), {
      message: 'Forbidden member_of parameters are not supported in the specified microversion',
    });
    assert.deepEqual(parseMemberOf(forbidden, '', 1032), { required: [], forbidden: [a, b] });
  });

  test('a text that cannot be is refused; upstream names no parameter, and from 2.2 on it is named', () => {
    for (const [search, place, problem] of [
      ['limit=1&name=a%00b', 'name: ', "'a%00b' contains a NUL character."],
      ['name=%FF', 'name: ', "'%FF' is not valid UTF-8."],
      ['a%00=1', '', "'a%00' contains a NUL character."],
    ] as const) {
      assert.throws(() => parseQuery(`?${search}`), {
        status: 400,
        message: `Invalid query string parameters: ${problem}`,
        sentence: `Invalid query string parameters: ${place}${problem}`,
      });
    }
  });

  test('the last of several required counts, and from 1.39 all of them', () => {
    const values = query('required', 'A', '!B,C', 'D');
    assert.deepEqual(parseRequired(values, '', 1038), { required: [['D']], forbidden: [] });
    assert.deepEqual(parseRequired(values, '', 1039), { required: [['A'], ['C'], ['D']], forbidden: ['B'] });
    assert.throws(
      () => parseRequired(query('required', '!B'), '', 1021),
      /of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC\. Got: !B$/,
    );
  });
});
