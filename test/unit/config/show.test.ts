import assert from 'node:assert/strict';
import path from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { options } from '../../../src/config/config.ts';
import { escapeDollars } from '../../../src/config/oslo_ini.ts';
import { showConfig } from '../../../src/config/show.ts';
import { withConf, withMachine } from './machine.ts';

const shownLines = (text: string, env = {}): readonly string[] =>
  withConf(text, ({ root, load }) => showConfig(load({ env })).replaceAll(root, '').split('\n'));

/** The source and the line of an option. */
function shown(lines: readonly string[], group: string, name: string): readonly string[] {
  const section = lines.slice(lines.indexOf(`[${group}]`));
  const at = section.findIndex((line) => line.startsWith(`${name} = `) || line === `# ${name} is not set`);
  return section.slice(at - 1, at + 1);
}

suite('--show-config', () => {
  test('has each option with its value and source', () => {
    const lines = shownLines(
      '[DEFAULT]\nauth_strategy = noauth2\n[placement_database]\nconnection = postgresql+psycopg2://u:hunter2@h/d',
      {
        OS_API__PORT: '80',
      },
    );
    assert.equal(lines[0], '# Files: /etc/placement/placement.conf');
    assert.deepEqual(shown(lines, 'api', 'auth_strategy'), [
      '# /etc/placement/placement.conf:2',
      'auth_strategy = noauth2',
    ]);
    assert.deepEqual(shown(lines, 'api', 'port'), ['# OS_API__PORT', 'port = 80']);
    assert.deepEqual(shown(lines, 'api', 'host'), ['# default', 'host = 127.0.0.1']);
    assert.deepEqual(shown(lines, 'ssl', 'cert_file'), ['# default', '# cert_file is not set']);
    assert.deepEqual(shown(lines, 'placement_database', 'connection'), [
      '# /etc/placement/placement.conf:4',
      'connection = postgresql://u:***@h/d',
    ]);
    for (const { group, name } of options) assert.equal(shown(lines, group, name).length, 2, `[${group}] ${name}`);
  });

  test('says what each option is for and which values are allowed', () => {
    const lines = shownLines('');
    for (const { help, type } of options) assert.ok(lines.includes(`# ${help} (${type.expected})`), help);
    assert.ok(lines.includes('# The port to listen on; 0 for any free one. (an integer from 0 to 65535)'));
  });

  test('says that no file was found', () => {
    withMachine({}, ({ load }) => assert.match(showConfig(load()), /^# No configuration file was found\.\n/));
  });

  test('shows no secret from any source', () => {
    const secret = 'hunter2';
    const text = `
[keystone_authtoken]
password = ${secret}
username = $password
www_authenticate_uri = http://u:${secret}@keystone/
auth_url = http://$password/
region_name = $auth_url
[placement_database]
connection = postgresql://u:${secret}@h/d?password=${secret}
slave_connection = postgresql+psycopg2://u:${secret}/a@h/d?sslpassword=${secret}
[cors]
allowed_origin = http://a, $keystone_authtoken.password
`;
    const lines = shownLines(text);
    assert.doesNotMatch(lines.join('\n'), new RegExp(secret));
    assert.deepEqual(shown(lines, 'keystone_authtoken', 'region_name')[1], 'region_name = ***');
    assert.deepEqual(shown(lines, 'cors', 'allowed_origin')[1], 'allowed_origin = ***');
    const variables = { OS_KEYSTONE_AUTHTOKEN__PASSWORD: secret, DATABASE_URL: `postgres://u:${secret}@h/d` };
    assert.doesNotMatch(shownLines('', variables).join('\n'), new RegExp(secret));
  });

  test('can be read as a file with the same meaning, except for secrets', () => {
    const text = fc.string({ unit: fc.constantFrom('$', '{', '}', '"', "'", ' ', 'a', '#', '=', '[', '\\', 'é') });
    const region = fc.option(text, { nil: undefined });
    fc.assert(
      fc.property(region, fc.array(fc.stringMatching(/^[a-z$"]{1,4}$/)), fc.boolean(), (regionName, origins, debug) => {
        const env = {
          OS_KEYSTONE_AUTHTOKEN__REGION_NAME: regionName === undefined ? undefined : escapeDollars(regionName),
          OS_CORS__ALLOWED_ORIGIN: escapeDollars(origins.join(',')),
          OS_DEFAULT__DEBUG: String(debug),
        };
        withMachine({}, ({ load }) => {
          const before = load({ env });
          withMachine({ 'shown.conf': showConfig(before) }, (other) => {
            const { config } = other.load({ configFiles: [path.join(other.root, 'shown.conf')] });
            assert.deepEqual(config, before.config);
          });
          assert.equal(before.config.keystoneAuthtoken.regionName, regionName || undefined);
        });
      }),
      { numRuns: 50 },
    );
  });
});
