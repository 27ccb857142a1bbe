/** The allowed content of a policy file. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { printCheck } from '../../src/access/policy/check.ts';
import { parsePolicyFile } from '../../src/access/policy/parse_file.ts';

const rulesOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(parsePolicyFile(text, 'f').rules.map(({ name, check }) => [name, printCheck(check)]));

suite('the text of a policy file', () => {
  test('can be YAML with comments, JSON with tabs, or empty', () => {
    assert.deepEqual(rulesOf('# all of it\n"a": "role:x"\nb: role:y or\n  role:z\n'), {
      a: 'role:x',
      b: '(role:y or role:z)',
    });
    assert.deepEqual(rulesOf('{\n\t"a": "@",\n\t"b": [["role:x"], ["role:y", "c:d"]]\n}'), {
      a: '@',
      b: '(role:x or (role:y and c:d))',
    });
    for (const empty of ['', '\n', '# nothing\n', '---\n', 'null', '{}', '[]']) {
      const { rules, problems } = parsePolicyFile(empty, 'f');
      assert.deepEqual([rules, problems.length], [[], empty === '[]' ? 1 : 0], empty);
    }
  });

  test('an empty rule allows, the last of two equal names counts, and aliases are resolved', () => {
    assert.deepEqual(rulesOf('a:\nb: ""\nc: []\n'), { a: '@', b: '@', c: '@' });
    assert.deepEqual(rulesOf('a: role:x\na: role:y\n'), { a: 'role:y' });
    assert.deepEqual(rulesOf('a: &x role:x\nb: *x\n'), { a: 'role:x', b: 'role:x' });
  });

  test('an error has the line of the problem', () => {
    const cases: readonly (readonly [text: string, problem: RegExp])[] = [
      ['a: b\n c: d\n', /^f:[12]: /],
      ['a: "role:x\n', /^f:\d: /],
      ['a: @\n', /^f:1: /],
      ['a: !deny role:x\n', /^f:1: Unresolved tag/],
      ['- a\n', /^f: a policy file must be a mapping/],
      ['role:x', /^f: a policy file must be a mapping/],
      ['a: 5\n', /^f: a must be a rule in quotes/],
      ['a: false\n', /^f: a must be a rule in quotes/],
      ['a: {b: c}\n', /^f: a must be a rule in quotes/],
      ['a: [[[role:x]]]\n', /^f: a must be a rule in quotes/],
      ['a: !\n', /^f: a has an exclamation mark without quotes/],
    ];
    for (const [text, problem] of cases) {
      const { rules, problems } = parsePolicyFile(text, 'f');
      assert.deepEqual([rules, problems.length], [[], 1], text);
      assert.match(problems[0] ?? '', problem);
    }
  });
});
