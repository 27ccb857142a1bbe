/** What is said about the rules of policy files, and that very many of them are no reason to wait. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { namesInCircles, ruleComplaints } from '../../src/access/policy/complaints.ts';
import { parsePolicyFile, parseRule } from '../../src/access/policy/parse.ts';
import { assembleRules } from '../../src/access/policy/rules.ts';

const settings = { enforceScope: true, enforceNewDefaults: true, policyDefaultRule: 'default' };

const complaintsOf = (rules: readonly (readonly [name: string, rule: string])[]): readonly string[] =>
  ruleComplaints(
    assembleRules(
      rules.map(([name, rule]) => ({ name, check: parseRule(rule).check, file: 'f' })),
      settings,
    ),
  );

const many = 30_000;
const numbered = <T>(each: (index: number) => T): readonly T[] =>
  Array.from({ length: many }, (_, index) => each(index));

test('of very many rules without effect the first ones are named, and the rest is counted', () => {
  const said = complaintsOf(numbered((index) => [`placement:traits:lst${index}`, 'role:x']));
  assert.equal(said.length, 101);
  assert.match(
    said[0] ?? '',
    /^The policy rule placement:traits:lst0 of f has no effect.* Did you mean placement:traits:list\?$/,
  );
  assert.match(said[100] ?? '', /^29900 more policy rules have no effect/);
});

test('of very many rules in circles the first ones are named, and the rest is counted', () => {
  const said = complaintsOf(numbered((index) => [`a${index}`, `role:x or rule:a${(index + 1) % many}`]));
  assert.equal(said.length, 101);
  assert.match(said[0] ?? '', /^The policy rule a\d+ refers to itself, directly or through other rules/);
  assert.match(said[100] ?? '', /^29900 more policy rules refer to themselves/);
  assert.deepEqual(complaintsOf(numbered((index) => [`a${index}`, index === 0 ? 'role:x' : `rule:a${index - 1}`])), [
    `The policy rule a${many - 1} of f has no effect: no request and no other rule asks for it.`,
  ]);
});

test('of very many rules that do not exist the first ones are named, and the rest is counted', () => {
  const one = complaintsOf([['default', numbered((index) => `rule:x${index}`).join(' or ')]]);
  assert.deepEqual(one, [
    'The policy rule default refers to rules that do not exist: x0, x1, x2, x3, x4, x5, x6, x7, x8, x9 and 29990 more. ' +
      'Define them in a policy file, or leave them out.',
  ]);
  const each = complaintsOf(numbered((index) => [`a${index}`, `rule:b${index} or rule:a${index}`]));
  assert.match(each.join('\n'), /\n29900 more policy rules refer to rules that do not exist\./);
});

test('of very many malformed rules the first ones are named, and the rest is counted', () => {
  const text = (rule: (index: number) => string): string =>
    Array.from({ length: 2000 }, (_, index) => `a${index}: ${rule(index)}\n`).join('');
  const { warnings } = parsePolicyFile(
    text((index) => `badcheck or bad${index}`),
    'f',
  );
  assert.equal(warnings.length, 101);
  assert.equal(warnings[100], 'f: 3900 more rules and checks are malformed, so they deny.');
  const { problems } = parsePolicyFile(text(String), 'f');
  assert.equal(problems.length, 101);
  assert.equal(problems[100], 'f: 1900 more rules are of these kinds.');
});

test('a rule is in a circle if its references lead back to it', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const references = fc.array(fc.uniqueArray(fc.constantFrom(...names, 'nothing'), { maxLength: 3 }), {
    minLength: names.length,
    maxLength: names.length,
  });
  let some = 0;
  fc.assert(
    fc.property(references, (lists) => {
      const of = new Map(names.map((name, index) => [name, lists[index] ?? []]));
      const expected = names.filter((name) => {
        const reached = new Set(of.get(name));
        for (const other of reached) for (const next of of.get(other) ?? []) reached.add(next);
        return reached.has(name);
      });
      some += expected.length > 0 && expected.length < names.length ? 1 : 0;
      assert.deepEqual([...namesInCircles(of)].toSorted(), expected);
    }),
    { numRuns: 3000 },
  );
  assert.ok(some > 300);
});
