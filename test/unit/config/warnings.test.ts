import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { databaseWarning } from '../../../src/start/database_warning.ts';
import { describeDatabase } from '../../../src/start/describe_database.ts';
import { withConf, withPlace } from './place.ts';

const conf = '/etc/placement/placement.conf';
const warningsOf = (text: string): readonly string[] =>
  withConf(text, ({ root, load }) => load().warnings.map((warning) => warning.replaceAll(`${root}/`, '/')));

suite('sections that are probably misspelled are reported', () => {
  for (const [written, meant] of [
    ['placement_databse', 'placement_database'],
    ['PLACEMENT-DATABASE', 'placement_database'],
    ['placment', 'placement'],
    ['keystone_autthoken', 'keystone_authtoken'],
    ['oslo.policy', 'oslo_policy'],
    ['default', 'DEFAULT'],
    ['core', 'cors'],
    ['apii', 'api'],
    ['SL', 'ssl'],
    ['pai', 'api'],
  ]) {
    test(`${written}`, () => {
      const [warning = '', ...more] = warningsOf(`[${written}]\nconnection = postgresql://u:hunter2@h/d\n`);
      assert.deepEqual(more, []);
      assert.equal(
        warning,
        `${conf}: section [${written?.toLowerCase()}] has no option of this service and is ignored. Did you mean [${meant}]?`,
      );
    });
  }

  test('sections of other libraries are not reported', () => {
    const sections = [
      ...['DEFAULT', 'api', 'database', 'api_database', 'oslo_limit', 'oslo_concurrency', 'oslo_reports', 'profiler'],
      ...[
        'cache',
        'cors.subdomain',
        'healthcheck',
        'sql',
        'ssh',
        'pci',
        'app',
        'placement_policy',
        'keystone',
        'service_user',
      ],
      ...['oslo_messaging_rabbit', 'oslo_versionedobjects', 'keystone_auth', 'service_auth', 'audit', 'coordination'],
    ];
    assert.deepEqual(warningsOf(sections.map((section) => `[${section}]\nname = value\n`).join('')), []);
  });

  test('our sections are not reported, in any case of letters', () => {
    const sections = [
      'API',
      'SSL',
      'Placement_Database',
      'keystone_authtoken',
      'oslo_policy',
      'oslo_middleware',
      'cors',
    ];
    assert.deepEqual(warningsOf(sections.map((section) => `[${section}]\nname = value\n`).join('')), []);
  });

  test('the section that auth_section names is not reported', () => {
    const text = (authSection: string) =>
      `[keystone_authtoken]\nauth_section = ${authSection}\n[keystone_authtokens]\nusername = u\n`;
    assert.deepEqual(warningsOf(text('keystone_authtokens')), []);
    assert.equal(warningsOf(text('other')).length, 1);
  });
});

test('a policy file that is set but missing is reported', () => {
  assert.deepEqual(warningsOf('[oslo_policy]\npolicy_file = rules.yaml\n'), [
    `${conf}:2: [oslo_policy] policy_file = "rules.yaml" (which is "/etc/placement/rules.yaml"): there is no such file, so the default rules apply.`,
  ]);
  assert.deepEqual(warningsOf('[oslo_policy]\nenforce_scope = true\n'), [], 'no warning if it is not set');
  withPlace(
    { 'etc/placement/placement.conf': '[oslo_policy]\npolicy_file = rules.yaml\n', 'etc/placement/rules.yaml': '' },
    ({ load }) => assert.deepEqual(load().warnings, []),
  );
});

test('a file without the place of the database is reported', () => {
  withConf('[api]\nauth_strategy = noauth2\n', ({ load }) => {
    assert.match(
      databaseWarning(load()) ?? '',
      /placement\.conf: neither .* leaves the embedded database in \/\S+\/placement-data\. Set connection/,
    );
    for (const env of [
      { DATABASE_URL: 'postgresql://h/d' },
      { OS_PLACEMENT_DATABASE__CONNECTION: 'postgresql://h/d' },
      { OS_PLACEMENT_DATABASE__EMBEDDED_PATH: './placement-data' },
    ]) {
      assert.equal(databaseWarning(load({ env })), undefined);
    }
  });
  withPlace({}, ({ load }) => assert.equal(databaseWarning(load()), undefined, 'no warning without configuration'));
});

test('a database is described without user and password', () => {
  const described = (connection: string) =>
    describeDatabase({ connection, embeddedPath: '' }, { PGHOST: 'pg', PGPORT: '1' });
  assert.equal(described('postgresql://u:hunter2@h:5433/d%20e?sslmode=require'), 'PostgreSQL database d e at h:5433');
  assert.equal(described('postgresql://u:hunter2@[::1]/d'), 'PostgreSQL database d at [::1]:1');
  assert.equal(described('postgresql://u@'), 'PostgreSQL database u at pg:1');
  assert.equal(described('postgresql://u@/d?host=/var/run/postgresql'), 'PostgreSQL database d at /var/run/postgresql');
  const embedded = (embeddedPath: string) => describeDatabase({ connection: undefined, embeddedPath });
  assert.equal(embedded('/data'), 'embedded database in /data');
  assert.equal(embedded('memory://'), 'embedded database in memory');
});
