/** The rule language: its meaning, and that printing a rule keeps it. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { type Check, CircularRules, evaluate, printCheck, type Values } from '../../src/access/policy/evaluate.ts';
import { parseRule } from '../../src/access/policy/parse.ts';
import { assembleRules, circumstancesOf, decide } from '../../src/access/policy/rules.ts';
import { noIdentity } from '../../src/rest/identity.ts';
import { naiveEvaluation, naiveRuleEvaluation } from './naive_evaluation.ts';

type Rule = Parameters<typeof parseRule>[0];

const printed = (rule: Rule): string => printCheck(parseRule(rule).check);

const credentials: Values = {
  user_id: 'u1',
  project_id: 'p1',
  domain_id: null,
  roles: ['Admin', 'reader'],
  is_admin_project: true,
  token: { user: { id: 7 }, groups: [{ name: 'a' }, { name: 'b' }] },
};
const target: Values = {
  project_id: 'p1',
  user_id: 'u2',
  kind: 'Member',
  enabled: true,
  nothing: null,
  missing_as_text: 'None',
};

function holds(rule: Rule, rules: Readonly<Record<string, string>> = {}): boolean | undefined {
  const lookup = (name: string) => (name in rules ? parseRule(rules[name] ?? '').check : undefined);
  return evaluate(parseRule(rule).check, { credentials, target, rule: lookup });
}

suite('parsing', () => {
  const cases: readonly (readonly [rule: Rule, text: string])[] = [
    ['', '@'],
    ['@', '@'],
    ['!', '!'],
    ['role:admin', 'role:admin'],
    ['  role:admin\n', 'role:admin'],
    ['a:1 or b:2 and c:3', '(a:1 or (b:2 and c:3))'],
    ['a:1 and b:2 or c:3', '((a:1 and b:2) or c:3)'],
    ['a:1 and b:2 and c:3', '(a:1 and b:2 and c:3)'],
    ['not a:1 and b:2', '(not a:1 and b:2)'],
    ['NOT not a:1 OR b:2', '(not not a:1 or b:2)'],
    ['not (a:1 or b:2)', 'not (a:1 or b:2)'],
    ['((a:1)and)', '((a:1)and)'],
    ['not admin and not http://a/b', '(not admin and not http://a/b)'],
    ['((a:1) and b:%(c)s)', '(a:1 and b:%(c)s)'],
    ['a:b:c', 'a:b:c'],
    [[], '@'],
    [[[]], '!'],
    [['role:admin', ['a:1', 'b:2']], '(role:admin or (a:1 and b:2))'],
    [[['role:admin']], 'role:admin'],
    [[[], 'role:two words'], 'role:two words'],
  ];
  for (const [rule, text] of cases) {
    test(JSON.stringify(rule), () => assert.equal(printed(rule), text));
  }

  test('a rule that cannot be parsed denies, and is reported', () => {
    const malformed = [
      ' ',
      '()',
      '(a:1',
      'a:1)',
      'a:1 b:2',
      'and',
      'a:1 or',
      'not',
      '"a:1"',
      "a:1 or 'x'",
      'a:1 and or b:2',
    ];
    for (const rule of malformed) {
      const { check, problems } = parseRule(rule);
      assert.deepEqual([check, problems.length], [{ type: 'broken', text: rule }, 1], rule);
      assert.match(problems[0] ?? '', /cannot be parsed, so it denies/);
    }
  });

  test('a rule of very many words or parentheses is read, and one that is nested very deep denies', () => {
    const many = Array.from({ length: 50_000 }, (_, index) => `a:${index}`);
    assert.deepEqual(parseRule(`(${many.join(' or ')})`).problems, []);
    const parentheses = ')'.repeat(100_000);
    assert.deepEqual(parseRule(`a:${parentheses}b`).check, { type: 'match', kind: 'a', match: `${parentheses}b` });
    const around = [
      (depth: number) => `${'('.repeat(depth)}role:admin${')'.repeat(depth)}`,
      (depth: number) => `${'not '.repeat(depth)}role:admin`,
      (depth: number) => `${'not ( '.repeat(depth / 2)}role:admin${' )'.repeat(depth / 2)}`,
    ];
    for (const nest of around) {
      assert.equal(holds(`role:nobody or ${nest(200)}`), true, nest(2));
      for (const depth of [202, 100_000]) {
        const { check, problems } = parseRule(nest(depth));
        assert.equal(check.type, 'broken', nest(2));
        assert.match(problems.join(), /cannot be parsed, so it denies: around one check are more than 200 parentheses/);
        assert.ok(problems.join().length < 500, 'the message has the beginning of the rule only');
      }
      assert.equal(holds(`${`${nest(200)} and `.repeat(5)}role:admin`), true, 'beside each other there may be more');
    }
  });

  test('if one check of a rule is malformed, only this check denies', () => {
    for (const [atom, why] of [
      ['admin', /kind:match/],
      [':admin', /kind:match/],
      ['http://example.com/check', /another server/],
      ['https://example.com/check', /another server/],
      ['project_id:%(project_id', /percent sign/],
      ['project_id:%d', /percent sign/],
    ] as const) {
      const { check, problems } = parseRule(`${atom} or role:admin`);
      assert.equal(printCheck(check), `(${atom} or role:admin)`);
      assert.match(problems.join(), why);
      assert.equal(holds(`${atom} or role:admin`), true);
      assert.equal(holds(`${atom} or role:nobody`), undefined);
    }
  });
});

suite('evaluation', () => {
  const cases: readonly (readonly [rule: Rule, expected: boolean | undefined])[] = [
    ['', true],
    ['!', false],
    ['role:ADMIN', true],
    ['role:member', false],
    ['role:%(kind)s', false],
    ['project_id:%(project_id)s', true],
    ['user_id:%(user_id)s', false],
    ['user_id:u1', true],
    ['project_id:%(absent)s', undefined],
    ['role:%(absent)s', undefined],
    ['absent:p1', undefined],
    ['roles:reader', true],
    ['roles:READER', false],
    ['token.user.id:7', true],
    ['token.user.name:x', false],
    ['token.user:7', false],
    ['token.groups.name:b', true],
    ['token.groups.name:c', false],
    ['user_id.x:u1', false],
    ['is_admin_project:True', true],
    ['domain_id:None', true],
    ['domain_id:%(nothing)s', undefined],
    ['domain_id:%(missing_as_text)s', false],
    ['not domain_id:%(nothing)s', undefined],
    ['role:%(nothing)s', undefined],
    ['True:%(enabled)s', true],
    ['False:%(enabled)s', false],
    ['None:%(nothing)s', true],
    ["'Member':%(kind)s", true],
    ['"Member":%(kind)s', true],
    ["'Owner':%(kind)s", false],
    ['1:1', true],
    ['-1:-1', true],
    ['+5:5', true],
    ['1.50:1.5', true],
    ['2.0:2.0', true],
    ['user_id:u1%%', false],
    ["'100%%':100%%", false],
    ["'100%':100%%", true],
    ['rule:unknown', undefined],
    ['not rule:unknown', undefined],
    [['role:nobody', ['role:admin', 'user_id:u1']], true],
    [['role:nobody', ['role:admin', 'user_id:u2']], false],
    ['constructor:p1 or __proto__.x:1 or project_id:%(toString)s', undefined],
  ];
  for (const [rule, expected] of cases) {
    test(`${JSON.stringify(rule)} is ${expected}`, () => assert.equal(holds(rule), expected));
  }

  test('rules refer to each other', () => {
    const rules = { one: 'rule:two or role:nobody', two: 'not role:nobody and role:admin' };
    assert.equal(holds('rule:one', rules), true);
    assert.equal(holds('rule:one and not rule:two', rules), false);
  });

  test('a rule that refers to itself has no result, also behind a not, unless that part is not evaluated', () => {
    const rules = { one: 'rule:two', two: 'not rule:one' };
    assert.throws(() => holds('rule:one', rules), CircularRules);
    assert.throws(() => holds('not rule:one', rules), CircularRules);
    assert.equal(holds('role:admin or rule:one', rules), true);
  });
});

suite('rules that refer to many others', () => {
  /** Evaluates `rule:0` and counts how often a rule is looked up. */
  function evaluateRules(rules: ReadonlyMap<string, Check>): readonly [boolean | undefined, evaluations: number] {
    let evaluations = 0;
    const rule = (name: string) => {
      evaluations += 1;
      return rules.get(name);
    };
    return [evaluate(parseRule('rule:0').check, { credentials, target, rule }), evaluations];
  }
  const rulesOf = (count: number, text: (next: string) => string, last: string) =>
    new Map(
      Array.from({ length: count }, (_, index) => {
        const own = index === count - 1 ? last : text(`rule:${index + 1}`);
        return [String(index), parseRule(own).check] as const;
      }),
    );

  test('a rule is evaluated once, however often others refer to it', () => {
    for (const operator of ['and', 'or', 'and not']) {
      for (const last of ['role:admin', 'role:nobody', 'rule:nothing']) {
        const rules = rulesOf(18, (next) => `${next} ${operator} ${next}`, last);
        const [, evaluations] = evaluateRules(rules);
        assert.ok(evaluations <= 19, `${operator} ${last}: ${evaluations}`);
      }
    }
  });

  test('a chain of rules may be long, and a circle in it is found', () => {
    const chain = (last: string) => evaluateRules(rulesOf(100_000, (next) => `role:nobody or ${next}`, last));
    assert.deepEqual(chain('role:admin'), [true, 100_000]);
    assert.deepEqual(chain('role:nobody'), [false, 100_000]);
    assert.throws(() => chain('rule:50000'), CircularRules);
  });
});

suite('properties', () => {
  const plain = { noNullPrototype: true } as const;
  const word = fc.stringMatching(/^[a-z0-9_.'"-]{1,8}$/);
  const match = fc.oneof(word, fc.constantFrom('%(project_id)s', '%(absent)s', '%(user_id)s', 'a:b', '50%%', ''));
  const kind = fc.oneof(fc.constantFrom('role', 'rule', 'project_id', 'user_id', 'roles', 'token.user.id'), word);
  const leaf: fc.Arbitrary<Check> = fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom<Check>({ type: 'allow' }, { type: 'deny' }) },
    { weight: 8, arbitrary: fc.record({ type: fc.constant('match' as const), kind, match }, plain) },
  );
  const { check } = fc.letrec<{ check: Check }>((tie) => ({
    check: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      leaf,
      fc.record({ type: fc.constant('not' as const), check: tie('check') }, plain),
      fc.record(
        {
          type: fc.constantFrom('and' as const, 'or' as const),
          checks: fc.array(tie('check'), { minLength: 2, maxLength: 4 }),
        },
        plain,
      ),
    ),
  }));
  /** Words that the language cannot write: a word in quotes is a text. */
  const isQuoted = (each: Check): boolean =>
    each.type === 'match'
      ? /^(?:".*"|'.*')$/.test(printCheck(each))
      : each.type === 'not'
        ? isQuoted(each.check)
        : 'checks' in each && each.checks.some(isQuoted);
  const writable = check.filter((each) => !isQuoted(each));

  test('a printed rule can be parsed, with the same result', () => {
    fc.assert(
      fc.property(writable, (original) => {
        const { check: parsed, problems } = parseRule(printCheck(original));
        assert.deepEqual([parsed, problems], [original, []]);
      }),
      { numRuns: 2000 },
    );
  });

  test('a parsed text can be printed and parsed again, with the same result', () => {
    const token = fc.constantFrom('(', ')', 'and', 'OR', 'not', 'role:a', 'b:%(c)s', '!', '@', 'x', '"q"');
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
        const { check: first } = parseRule(tokens.join(' '));
        assert.deepEqual(parseRule(printCheck(first)).check, first);
      }),
      { numRuns: 5000 },
    );
  });

  const atom = fc.constantFrom('role:admin', 'role:none', '@', '!', 'project_id:%(project_id)s', 'user_id:%(user_id)s');
  const operator = fc.constantFrom('and', 'AND', 'or', 'Or');
  const { text } = fc.letrec<{ text: string }>((tie) => ({
    text: fc.oneof(
      { maxDepth: 5, depthSize: 'medium' },
      atom,
      fc.tuple(tie('text'), operator, tie('text')).map((parts) => parts.join(' ')),
      tie('text').map((inner) => `(${inner})`),
      tie('text').map((inner) => `( ${inner} )`),
      tie('text').map((inner) => `not ${inner}`),
    ),
  }));

  test('the evaluator has the same results as a second, naive one', () => {
    const truths: Readonly<Record<string, boolean>> = {
      'role:admin': true,
      'role:none': false,
      '@': true,
      '!': false,
      'project_id:%(project_id)s': true,
      'user_id:%(user_id)s': false,
    };
    fc.assert(
      fc.property(text, (rule) => assert.equal(holds(rule), naiveEvaluation(rule, truths))),
      { numRuns: 5000 },
    );
  });

  const unknowns = ['http://a/b', 'badcheck', 'rule:nothing', 'absent:x', 'project_id:%(absent)s', 'user_id:%d'];
  const { partly } = fc.letrec<{ partly: string }>((tie) => ({
    partly: fc.oneof(
      { maxDepth: 4, depthSize: 'medium' },
      fc.oneof(fc.constantFrom(...unknowns), atom),
      fc.tuple(tie('partly'), operator, tie('partly')).map((parts) => `( ${parts.join(' ')} )`),
      tie('partly').map((inner) => `not ${inner}`),
    ),
  }));

  test('a rule with checks that cannot be evaluated allows only what it allows whatever their results are', () => {
    let opened = 0;
    fc.assert(
      fc.property(partly, (rule) => {
        if (holds(rule) !== true) return;
        opened += unknowns.some((each) => rule.includes(each)) ? 1 : 0;
        for (const each of ['@', '!']) {
          const known = unknowns.reduce((text, unknown) => text.replaceAll(unknown, each), rule);
          assert.equal(holds(known), true, known);
        }
      }),
      { numRuns: 5000 },
    );
    assert.ok(opened > 100, 'some rules with unknown checks allow nevertheless');
  });

  test('rules that refer to each other have the results of an evaluator without a cache', () => {
    const names = ['one', 'two', 'three', 'four', 'fallback'];
    const single = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('role:admin', 'role:none', 'badcheck') },
      { weight: 2, arbitrary: fc.constantFrom(...names, 'nothing', 'nowhere').map((name) => `rule:${name}`) },
    );
    const { rule } = fc.letrec<{ rule: string }>((tie) => ({
      rule: fc.oneof(
        { maxDepth: 3, depthSize: 'small' },
        single,
        fc.tuple(tie('rule'), operator, tie('rule')).map((parts) => `( ${parts.join(' ')} )`),
        tie('rule').map((inner) => `not ${inner}`),
      ),
    }));
    const results = new Map<unknown, number>();
    fc.assert(
      fc.property(fc.array(rule, { minLength: names.length, maxLength: names.length }), fc.boolean(), (texts, last) => {
        const written = names.map((name, index) => ({ name, check: parseRule(texts[index] ?? '').check, file: 'f' }));
        const settings = { enforceScope: false, enforceNewDefaults: true, policyDefaultRule: 'fallback' };
        const rules = assembleRules(last ? written : written.slice(0, -1), settings);
        const own = (name: string) => rules.byName.get(name)?.check;
        const unknown: Check = { type: 'broken', text: 'unknown' };
        const standIn = own('fallback');
        const leaf = (each: Check) => (each.type === 'match' ? each.match === 'admin' : undefined);
        const identity = { ...noIdentity, roles: ['admin'] };
        for (const name of [...names, 'nothing']) {
          const check = own(name) ?? standIn;
          if (check === undefined) continue;
          const lookup = (each: string) =>
            own(each) ?? (standIn && { type: 'or' as const, checks: [standIn, unknown] });
          const expected = naiveRuleEvaluation(check, lookup, leaf, [name]);
          results.set(expected, (results.get(expected) ?? 0) + 1);
          let result: boolean | undefined | 'circle';
          try {
            result = evaluate(check, circumstancesOf(rules, identity, {}), [name]);
          } catch (error) {
            assert.ok(error instanceof CircularRules);
            result = 'circle';
          }
          assert.equal(result, expected, `${name} of ${JSON.stringify(texts)}`);
          const because = expected === 'circle' ? 'circle' : 'check';
          assert.deepEqual(decide(rules, name, identity, {}), { allowed: expected === true, because });
        }
      }),
      { numRuns: 5000 },
    );
    for (const each of [true, false, undefined, 'circle']) assert.ok((results.get(each) ?? 0) > 500, String(each));
  });

  test('whatever cannot be evaluated stays so behind any number of not', () => {
    for (const unknown of unknowns) {
      for (const around of ['X', 'not X', 'not not X', 'not (X)', 'not (X or role:none)', 'not (X and role:admin)']) {
        const rule = around.replace('X', unknown);
        assert.equal(holds(rule), undefined, rule);
      }
    }
  });
});
