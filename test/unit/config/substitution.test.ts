// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the syntax under test.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { escapeDollars, substitute } from '../../../src/config/oslo_ini.ts';
import { withConf } from './machine.ts';

const names: Readonly<Record<string, string>> = { b: 'Bee', 'g.b': 'Gee', dollar: '$b' };
const lookup = (name: string): string | undefined => names[name];

// The results of Python's string.Template with oslo.config's names. In Python unknown names would be an error.
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

  test('escaped dollar signs are restored in any text', () => {
    const text = fc.array(fc.constantFrom('$', '{', '}', '\\', 'b', 'g.b', ' ', '.')).map((parts) => parts.join(''));
    fc.assert(fc.property(text, (any) => assert.equal(substitute(escapeDollars(any), lookup), any)));
  });
});

suite('references between options', () => {
  const region = (text: string): string | undefined =>
    withConf(text, ({ load }) => load({ env: { OS_CORS__MAX_AGE: '60' } }).config.keystoneAuthtoken.regionName);
  const here = (value: string): string => `[keystone_authtoken]\nregion_name = ${value}\n`;

  test('an option of the same section is found first', () =>
    assert.equal(region(`${here('$username')}username = u\n`), 'u'));
  test('then an option of DEFAULT is found', () =>
    assert.equal(region(`[DEFAULT]\ndebug = on\n${here('$debug')}`), 'True'));
  test('an option of another section is found, also later in the table', () =>
    assert.equal(region(`${here('${cors.allowed_origin}')}[cors]\nallowed_origin = a, b`), 'a,b'));
  test('an option can come from the environment', () => assert.equal(region(here('$cors.max_age')), '60'));
  test('an option can have its default', () => assert.equal(region(here('$api.port')), '8778'));
  test('an option that is not set is empty', () => assert.equal(region(here('x$user_id')), 'x'));
  test('an option can refer to a further one', () =>
    assert.equal(region(`${here('$username')}username = $project_name\nproject_name = p`), 'p'));
  test('an option of upstream that this service ignores is found', () =>
    assert.equal(
      region(`[DEFAULT]\nstate_path = /var/lib/placement\n${here('$state_path/x')}`),
      '/var/lib/placement/x',
    ));
  test('an unknown option stays as written, although the file has it', () =>
    assert.equal(region(`[DEFAULT]\nmine = 1\n${here('$mine')}`), '$mine'));

  test('an option of a section [jwt:NAME] is found from the same section only', () => {
    const section = (name: string, more: string) => `[jwt:${name}]\nissuer = https://${name}\n${more}\n`;
    const text =
      section('one', 'jwks_uri = ${issuer}/keys') + section('two', 'jwks_uri = $issuer/keys\ncafile = $audience');
    const { one, two } = withConf(text, ({ load }) => load().config.jwt);
    assert.deepEqual([one?.jwksUri, two?.jwksUri, two?.cafile], ['https://one/keys', 'https://two/keys', undefined]);
  });

  test('a circle of references is an error', () => {
    withConf('[keystone_authtoken]\nusername = $region_name\nregion_name = ${username}\n', ({ problems }) => {
      assert.deepEqual(problems(), [
        '/etc/placement/placement.conf:3: [keystone_authtoken] region_name = "${username}": must not refer to itself; write $$ for a dollar sign.',
      ]);
    });
  });
});
