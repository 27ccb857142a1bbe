/** The allowed content of a policy file. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { printCheck } from '../../src/access/policy/evaluate.ts';
import { parsePolicyFile } from '../../src/access/policy/parse.ts';

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

  test('an error has the line and the column of the problem, and says what is wrong', () => {
    const cases: readonly (readonly [text: string, problem: RegExp])[] = [
      ['a: b\n c: d\n', /^f:1:4: A second name begins inside a rule/],
      ['a: "b"\n c: d\n', /^f:2:1: The indentation is not that of the lines before/],
      ['a: "role:x\n', /^f:2:1: A quote or a bracket is not closed/],
      ['a: role:x\nb: [\n', /^f:3:1: .* a bracket before it is not closed/],
      ['{"a": "role:x" "b": "role:y"}', /^f:1:16: This cannot follow here\. Put rules in quotes/],
      ['a:\n\t- role:x\n', /^f:2:1: There is a tab\. Indent with spaces/],
      ['a: role: x\n', /^f:1:4: A second name begins inside a rule\. Put rules in quotes/],
      ['"a\nb": c\n', /^f:1:1: A name must be in one line/],
      ['a: @\n', /^f:1:4: A value cannot begin with this character/],
      ['a: !deny role:x\n', /^f:1:4: There is no such tag/],
      ['a: b\n---\nc: d\n', /^f:2:1: A second document begins/],
      ['a: role:x\nb: *c\n', /^f:2:4: No value before has the anchor/],
      ['- a\n', /^f:1:1: A policy file must be a mapping/],
      ['role:x', /^f:1:1: A policy file must be a mapping/],
      ['b: ""\na: 5\n', /^f:2:4: a must be a rule in quotes/],
      ['a: false\n', /^f:1:4: a must be a rule in quotes/],
      ['a: {b: c}\n', /^f:1:4: a must be a rule in quotes/],
      ['a: [[[role:x]]]\n', /^f:1:4: a must be a rule in quotes/],
      ['a: !\n', /^f:1:\d: a has an exclamation mark without quotes/],
      ['a: role:x\na: !\n', /^f:2:\d: a has an exclamation mark without quotes/],
    ];
    for (const [text, problem] of cases) {
      const { rules, problems } = parsePolicyFile(text, 'f');
      assert.deepEqual([rules, problems.length], [[], 1], text);
      assert.match(problems[0] ?? '', problem, text);
    }
  });
});
