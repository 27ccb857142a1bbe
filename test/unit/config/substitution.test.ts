// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax under test.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { escapeDollars, substitute } from '../../../src/config/substitution.ts';
import { withConf } from './place.ts';

const names: Readonly<Record<string, string>> = { b: 'Bee', 'g.b': 'Gee', dollar: '$b' };
const lookup = (name: string): string | undefined => names[name];

// What Python's string.Template makes of each with oslo.config's names; there unknown names would be an error.
const cases: readonly (readonly [text: string, meaning: string])[] = [
  ['$b', 'Bee'],
  ['x${b}x', 'xBeex'],
  ['$b/$g.b', 'Bee/Gee'],
  ['${g.b}', 'Gee'],
  ['$b$b', 'BeeBee'],
  ['$dollar', '$b'],
  ['$$b', '$b'],
  ['\\$b', '$b'],
  ['\\\\$b', '\\$b'],
  ['$$$b', '$Bee'],
  ['$', '$'],
  ['a$1', 'a$1'],
  ['${b', '${b'],
  ['${}', '${}'],
  ['$bx', '$bx'],
  ['$b.', '$b.'],
  ['$nope ${no.pe}', '$nope ${no.pe}'],
];

suite('substitution', () => {
  for (const [text, meaning] of cases) test(text, () => assert.equal(substitute(text, lookup), meaning));

  test('escaped dollars come back, whatever is around them', () => {
    const text = fc.array(fc.constantFrom('$', '{', '}', '\\', 'b', 'g.b', ' ', '.')).map((parts) => parts.join(''));
    fc.assert(fc.property(text, (any) => assert.equal(substitute(escapeDollars(any), lookup), any)));
  });
});

suite('references between options', () => {
  const region = (text: string): string | undefined =>
    withConf(text, ({ load }) => load({ env: { OS_CORS__MAX_AGE: '60' } }).config.keystoneAuthtoken.regionName);
  const here = (value: string): string => `[keystone_authtoken]\nregion_name = ${value}\n`;

  test('an option of the same section', () => assert.equal(region(`${here('$username')}username = u\n`), 'u'));
  test('then one of DEFAULT', () => assert.equal(region(`[DEFAULT]\ndebug = on\n${here('$debug')}`), 'True'));
  test('one of another section, later in the table', () =>
    assert.equal(region(`${here('${cors.allowed_origin}')}[cors]\nallowed_origin = a, b`), 'a,b'));
  test('one that comes from the environment', () => assert.equal(region(here('$cors.max_age')), '60'));
  test('one with its default', () => assert.equal(region(here('$api.port')), '8778'));
  test('one that is not set is empty', () => assert.equal(region(here('x$user_id')), 'x'));
  test('one that refers further', () =>
    assert.equal(region(`${here('$username')}username = $project_name\nproject_name = p`), 'p'));
  test("one of upstream's that means nothing here", () =>
    assert.equal(
      region(`[DEFAULT]\nstate_path = /var/lib/placement\n${here('$state_path/x')}`),
      '/var/lib/placement/x',
    ));
  test('an unknown option stays, although the file has it', () =>
    assert.equal(region(`[DEFAULT]\nmine = 1\n${here('$mine')}`), '$mine'));

  test('a circle is an error', () => {
    withConf('[keystone_authtoken]\nusername = $region_name\nregion_name = ${username}\n', ({ problems }) => {
      assert.deepEqual(problems(), [
        '/etc/placement/placement.conf:3: [keystone_authtoken] region_name = "${username}": must not refer to itself; write $$ for a dollar sign.',
      ]);
    });
  });
});
