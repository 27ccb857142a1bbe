import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ConfigError } from '../../../src/config/config.ts';
import { databaseWarning, describeDatabase } from '../../../src/start/database.ts';
import { withConf, withMachine } from './machine.ts';

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
    ['jwt', 'jwt:NAME'],
    ['jwt:', 'jwt:NAME'],
    ['jwt.github', 'jwt:NAME'],
    ['JTW:github', 'jwt:NAME'],
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

suite('options that are probably misspelled are reported with file and line', () => {
  const cases: readonly (readonly [section: string, written: string, meant: string])[] = [
    ['api', 'prot', 'port'],
    ['api', 'workres', 'workers'],
    ['api', 'Port', 'port'],
    ['placement_database', 'max_pool_sise', 'max_pool_size'],
    ['keystone_authtoken', 'pasword', 'password'],
    ['DEFAULT', 'use_jsn', 'use_json'],
  ];
  for (const [section, written, meant] of cases) {
    test(`[${section}] ${written}`, () => {
      assert.deepEqual(warningsOf(`[${section}]\n# a comment\n${written} = hunter2\n`), [
        `${conf}:3: [${section}] ${written} is no option of this service and is ignored. Did you mean ${meant}?`,
      ]);
    });
  }

  test('in the section that auth_section names', () => {
    assert.deepEqual(warningsOf('[keystone_authtoken]\nauth_section = user\n[user]\nuser_nane = u\nusernam = u\n'), [
      `${conf}:4: [user] user_nane is no option of this service and is ignored. Did you mean username?`,
      `${conf}:5: [user] usernam is no option of this service and is ignored. Did you mean username?`,
    ]);
  });

  test('in the environment', () => {
    withMachine({}, ({ load }) => {
      assert.deepEqual(load({ env: { OS_API__PROT: '1', OS_PLACEMENT__OTHER: '1', OS_TOKEN: 't' } }).warnings, [
        'environment: OS_API__PROT is no option of this service and is ignored. Did you mean OS_API__PORT?',
        'environment: OS_PLACEMENT__OTHER is no option of this service and is ignored.',
      ]);
      assert.deepEqual(
        load({ env: { OS_PLACMENT__MAX_TERM: '1', OS_NOVA__X: '1', OS_DEFAULT__DEBUG: '1' } }).warnings,
        [
          'environment: OS_PLACMENT__MAX_TERM is no option of this service and is ignored. Did you mean OS_PLACEMENT__MAX_TERM?',
          'environment: OS_NOVA__X is no option of this service and is ignored.',
        ],
      );
      assert.deepEqual(load({ env: { OS_API__P0RT: '1', OS_API2__HOST: '::' } }).warnings, [
        'environment: OS_API__P0RT is no option of this service and is ignored. Did you mean OS_API__PORT?',
        'environment: OS_API2__HOST is no option of this service and is ignored. Did you mean OS_API__HOST?',
      ]);
      assert.deepEqual(
        load({ env: { OS_PLACEMENT_DATABASE_CONNECTION: 'x', OS_PLACEMENT_API_VERSION: '1.39' } }).warnings,
        [
          'environment: OS_PLACEMENT_DATABASE_CONNECTION is no option of this service and is ignored. Did you mean OS_PLACEMENT_DATABASE__CONNECTION?',
        ],
      );
      assert.deepEqual(load({ env: { DEFAULT_OS_API__HOST: '::', DEFAULT_OS_API__PROT: '1' } }).warnings, [
        'environment: DEFAULT_OS_API__PROT is no option of this service and is ignored. Did you mean DEFAULT_OS_API__PORT?',
      ]);
    });
  });

  test('in the environment, of the section that auth_section names', () => {
    withConf('[keystone_authtoken]\nauth_section = service_user\n', ({ load }) => {
      const { config, warnings } = load({
        env: {
          OS_SERVICE_USER__PASSWORD: 'p',
          DEFAULT_OS_SERVICE_USER__USERNAME: 'u',
          OS_SERVICE_USER__USERNAMES: 'n',
        },
      });
      assert.deepEqual([config.keystoneAuthtoken.password, config.keystoneAuthtoken.username], ['p', 'u']);
      assert.deepEqual(warnings, [
        'environment: OS_SERVICE_USER__USERNAMES is no option of this service and is ignored.',
      ]);
    });
  });

  test('older names, options without effect, and those of libraries are not reported', () => {
    const text =
      '[DEFAULT]\nlogfile = a\nlog_config_append = a\nuse_journal = true\nuse_syslog = true\nlog_date_format = a\n' +
      '[placement_database]\nconnection = postgresql://h/d\nmin_pool_size = 1\nmax_overflow = 1\nconnection_debug = 0\n' +
      '[keystone_authtoken]\nauth_uri = a\ntenant_name = a\nmemcached_servers = a\ntrust_id = a\ncache = a\ndomain_id = a\n' +
      '[ssl]\nca_file = a\nversion = a\nciphers = a\n';
    assert.deepEqual(warningsOf(text), []);
  });
});

suite('a file that only seems to name the database is refused', () => {
  const url = 'postgresql://u:hunter2@h/d';
  const cases: readonly (readonly [text: string, option: string])[] = [
    ['[placement_database]\nconection = $DATABASE_URL', `${conf}:2: [placement_database] conection`],
    [`[placement_databse]\nconnection = ${url}`, `${conf}:2: [placement_databse] connection`],
    [`[placement_database]\nurl = ${url}`, `${conf}:2: [placement_database] url`],
    [`[placement]\ndatabase_connection = ${url}`, `${conf}:2: [placement] database_connection`],
    [`[database]\nconnection = mysql+pymysql://u:hunter2@h/d`, `${conf}:2: [database] connection`],
    [`[DEFAULT]\nsql_connection = ${url}`, `${conf}:2: [DEFAULT] sql_connection`],
  ];
  for (const [text, option] of cases) {
    test(option, () => {
      withConf(text, ({ root, load }) => {
        const problem = thrownBy(() => databaseWarning(load())).replaceAll(`${root}/`, '/');
        assert.ok(problem.startsWith(`${option} seems to name the database, but only [placement_database]`), problem);
        assert.doesNotMatch(problem, /hunter2/);
        for (const env of [{ DATABASE_URL: url }, { OS_PLACEMENT_DATABASE__EMBEDDED_PATH: './data' }]) {
          assert.equal(databaseWarning(load({ env })), undefined);
        }
      });
    });
  }

  test('options of libraries are no reason', () => {
    const text = '[oslo_messaging]\nconnection = rabbit\n[profiler]\nconnection_string = mysql://h/d\n';
    withConf(text, ({ load }) => assert.match(databaseWarning(load()) ?? '', /neither/));
  });
});

function thrownBy(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return error instanceof ConfigError ? error.problems.join('\n') : String(error);
  }
  return 'nothing was thrown';
}

test('a policy file that is set but missing is reported', () => {
  assert.deepEqual(warningsOf('[oslo_policy]\npolicy_file = rules.yaml\n'), [
    `${conf}:2: [oslo_policy] policy_file = "rules.yaml" (which is "/etc/placement/rules.yaml"): there is no such file, and a process that starts without it has the default rules.`,
  ]);
  assert.deepEqual(warningsOf('[oslo_policy]\nenforce_scope = true\n'), [], 'no warning if it is not set');
  withMachine(
    { 'etc/placement/placement.conf': '[oslo_policy]\npolicy_file = rules.yaml\n', 'etc/placement/rules.yaml': '' },
    ({ load }) => assert.deepEqual(load().warnings, []),
  );
});

test('a file that does not say where the database is, is reported', () => {
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
  withMachine({}, ({ load }) => assert.equal(databaseWarning(load()), undefined, 'no warning without configuration'));
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
