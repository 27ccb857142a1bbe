import assert from 'node:assert/strict';
import path from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { defaultConfig } from '../../../src/config/config.ts';
import type { ConfigLocations } from '../../../src/config/search.ts';
import { withConf, withMachine } from './machine.ts';

const project = (value: string): string => `[placement]\nincomplete_consumer_project_id = ${value}\n`;
const user = (value: string): string => `[placement]\nincomplete_consumer_user_id = ${value}\n`;

suite('the folders of configuration files', () => {
  const standard = ['home/.placement', 'home', 'etc/placement', 'etc', 'common/etc/placement', 'snap/etc/placement'];
  const all = Object.fromEntries(standard.map((folder) => [`${folder}/placement.conf`, project(folder)]));

  for (const [index, folder] of standard.entries()) {
    test(`${folder} comes before ${standard.slice(index + 1).join(', ') || 'nothing'}`, () => {
      const files = Object.fromEntries(Object.entries(all).slice(index));
      withMachine(files, ({ root, load }) => {
        const env = { SNAP_COMMON: path.join(root, 'common'), SNAP: path.join(root, 'snap') };
        const { config, files: read } = load({ env });
        assert.equal(config.placement.incompleteConsumerProjectId, folder);
        assert.deepEqual(read, [path.join(root, folder, 'placement.conf')]);
      });
    });
  }

  test('without any files the defaults apply', () => {
    withMachine({}, ({ root, load }) => {
      const { config, files, settings } = load();
      const policy = { ...defaultConfig.osloPolicy, policyFile: path.join(root, 'etc/placement/policy.yaml') };
      const policyDirs = [path.join(root, 'etc/placement/policy.d')];
      assert.deepEqual(config, { ...defaultConfig, osloPolicy: { ...policy, policyDirs } });
      assert.deepEqual(files, []);
      assert.ok(settings.every(({ written }) => written === undefined));
      assert.ok(Object.isFrozen(config) && Object.isFrozen(config.cors.allowMethods));
    });
  });

  test('placement.conf.d is searched for separately and read after placement.conf, by name', () => {
    const files = {
      'etc/placement/placement.conf': project('main') + user('main'),
      'home/.placement/placement.conf.d/10.conf': project('ten'),
      'home/.placement/placement.conf.d/9.conf': project('nine'),
      'home/.placement/placement.conf.d/.hidden.conf': user('hidden'),
      'home/.placement/placement.conf.d/z.txt': 'nonsense',
      'etc/placement/placement.conf.d/1.conf': user('shadowed'),
    };
    withMachine(files, ({ load }) => {
      const { placement } = load().config;
      assert.deepEqual([placement.incompleteConsumerProjectId, placement.incompleteConsumerUserId], ['nine', 'main']);
    });
  });

  test('--config-file and --config-dir replace the search for these files, in order', () => {
    const files = {
      'etc/placement/placement.conf': '[api]\nport = 1\n',
      'etc/placement/placement.conf.d/x.conf': `${project('found')}[api]\nhost = found\n`,
      'a.conf': project('a') + user('a'),
      'home/b.conf': project('b'),
      'd/x.conf': user('d'),
    };
    withMachine(files, ({ load }) => {
      const byFile = load({ configFiles: ['a.conf', '~/b.conf'] }).config;
      assert.deepEqual(byFile.placement.incompleteConsumerProjectId, 'b');
      assert.deepEqual(
        [byFile.placement.incompleteConsumerUserId, byFile.api.host, byFile.api.port],
        ['a', 'found', 8778],
      );
      const byDirectory = load({ configFiles: ['a.conf'], configDirs: ['d'] }).config;
      assert.deepEqual([byDirectory.placement.incompleteConsumerUserId, byDirectory.api.host], ['d', '127.0.0.1']);
      assert.equal(load({ configDirs: ['d'] }).config.api.port, 1);
    });
  });

  test('OS_PLACEMENT_CONFIG_DIR means exactly its placement.conf', () => {
    withMachine(
      { 'etc/placement/placement.conf': project('etc'), 'x/placement.conf': user('x') },
      ({ root, load, problems }) => {
        const env = { OS_PLACEMENT_CONFIG_DIR: ` ${path.join(root, 'x')} ` };
        const { placement } = load({ env }).config;
        assert.equal(placement.incompleteConsumerUserId, 'x');
        assert.equal(placement.incompleteConsumerProjectId, defaultConfig.placement.incompleteConsumerProjectId);
        assert.equal(
          load({ env: { OS_PLACEMENT_CONFIG_DIR: ' ' } }).config.placement.incompleteConsumerProjectId,
          'etc',
        );
        assert.equal(
          load({ env, configFiles: ['etc/placement/placement.conf'] }).config.placement.incompleteConsumerProjectId,
          'etc',
        );
        const missing = problems({ env: { OS_PLACEMENT_CONFIG_DIR: path.join(root, 'y') } });
        assert.deepEqual(missing, ['/y/placement.conf: the configuration file cannot be read: it does not exist.']);
      },
    );
  });
});

test('the strongest source that has an option decides', () => {
  const sources = ['flag', 'environment', 'conf.d', 'conf', 'DATABASE_URL', 'default'] as const;
  const url = (name: string): string => `postgresql://h/${name}`;
  const file = (name: string): string => `[placement_database]\nconnection = ${url(name)}\n`;
  fc.assert(
    fc.property(fc.subarray([...sources]), (present) => {
      const has = (name: (typeof sources)[number]): boolean => present.includes(name);
      const files = {
        ...(has('conf') ? { 'etc/placement/placement.conf': file('conf') } : {}),
        ...(has('conf.d') ? { 'etc/placement/placement.conf.d/x.conf': file('conf.d') } : {}),
      };
      const env = {
        ...(has('environment') ? { OS_PLACEMENT_DATABASE__CONNECTION: url('environment') } : {}),
        ...(has('DATABASE_URL') ? { DATABASE_URL: url('DATABASE_URL') } : {}),
        ...(has('default') ? { DEFAULT_OS_PLACEMENT_DATABASE__CONNECTION: url('default') } : {}),
      };
      const overrides = has('flag')
        ? [{ group: 'placement_database', name: 'connection', text: url('flag'), flag: '--database' }]
        : [];
      withMachine(files, ({ load }) => {
        const { connection } = load({ env, overrides }).config.placementDatabase;
        assert.equal(connection, present[0] === undefined ? undefined : url(present[0]));
      });
    }),
    { numRuns: 80 },
  );
});

suite('one option', () => {
  test('the last of repeated overrides counts', () => {
    const flags = ['3', '4'].map((text) => ({ group: 'api', name: 'port', text, flag: '--port' }));
    withConf('[api]\nport = 1\nport = 2\n', ({ load }) => {
      assert.deepEqual([load().config.api.port, load({ overrides: flags }).config.api.port], [2, 4]);
    });
  });

  test('the section DEFAULT is written in full in the environment', () => {
    withMachine({}, ({ load }) => assert.equal(load({ env: { OS_DEFAULT__DEBUG: 'Yes' } }).config.default.debug, true));
  });

  test('connection gets connection_parameters, as with OpenStack Placement', () => {
    const parameters = 'connection_parameters = sslmode=verify-full&sslrootcert=/ca.pem\n';
    const [url, tls] = ['postgresql://u:p@h/d', 'sslmode=verify-full&sslrootcert=%2Fca.pem&uselibpqcompat=true'];
    for (const [written, expected] of [
      [`connection = ${url}\n${parameters}`, `${url}?${tls}`],
      [`${parameters}connection = ${url}?application_name=a\n`, `${url}?application_name=a&${tls}`],
      [
        `connection = ${url}?sslmode=require\n${parameters}`,
        `${url}?sslmode=require&sslrootcert=%2Fca.pem&uselibpqcompat=true`,
      ],
      [`connection = postgresql://u:p?s@h/d\n${parameters}`, `postgresql://u:p%3Fs@h/d?${tls}`],
      [parameters, undefined],
    ] as const) {
      withConf(`[placement_database]\n${written}`, ({ load }) =>
        assert.equal(load().config.placementDatabase.connection, expected),
      );
    }
    withConf(`[placement_database]\n${parameters}`, ({ load }) => {
      const { connection } = load({ env: { DATABASE_URL: url } }).config.placementDatabase;
      assert.equal(connection, `${url}?${tls}`);
    });
  });

  test('DATABASE_URL is used unchanged, including dollar signs', () => {
    withMachine({}, ({ load }) => {
      const { connection } = load({ env: { DATABASE_URL: 'postgres://u:a$$b@h/d' } }).config.placementDatabase;
      assert.equal(connection, 'postgresql://u:a%24%24b@h/d');
    });
  });

  test('an empty text or number means the default', () => {
    const text =
      '[api]\nhost =\nport =\n[placement_database]\nslave_connection =\n[keystone_authtoken]\npassword = ""\n';
    withConf(text, ({ load }) => {
      const { api, placementDatabase, keystoneAuthtoken } = load({ env: { DATABASE_URL: '' } }).config;
      assert.deepEqual([api.host, api.port], ['127.0.0.1', 8778]);
      assert.deepEqual([placementDatabase.slaveConnection, keystoneAuthtoken.password], [undefined, undefined]);
    });
  });

  test('an API on a UNIX socket may have its metrics on a port', () => {
    withConf('[api]\nhost = unix:/a\n[metrics]\nhost = ::1\nport = 1\n', ({ load }) =>
      assert.equal(load().config.metrics.port, 1),
    );
  });

  test('commas at the end of a list are ignored', () => {
    withConf('[cors]\nallow_methods = GET, PUT,,\n', ({ load }) =>
      assert.deepEqual(load().config.cors.allowMethods, ['GET', 'PUT']),
    );
  });

  test('older names are read if the file does not have the new one', () => {
    const files = {
      'a.conf':
        '[DEFAULT]\nauth_strategy = noauth2\nmax_request_body_size = 5\n[keystone_authtoken]\nauth_uri = http://old\n',
      'b.conf': '[api]\nauth_strategy = keystone\n[DEFAULT]\nauth_strategy = noauth2\n',
      'c.conf': '[DEFAULT]\nosapi_max_request_body_size = 6\n',
    };
    withMachine(files, ({ load }) => {
      const old = load({ configFiles: ['a.conf'] }).config;
      assert.deepEqual([old.api.authStrategy, old.osloMiddleware.maxRequestBodySize], ['noauth2', 5]);
      assert.equal(old.keystoneAuthtoken.wwwAuthenticateUri, 'http://old');
      const both = load({ configFiles: ['a.conf', 'b.conf', 'c.conf'] }).config;
      assert.deepEqual([both.api.authStrategy, both.osloMiddleware.maxRequestBodySize], ['keystone', 6]);
    });
  });

  test('auth_section moves the options of the plugin, and no others', () => {
    const text = [
      '[keystone_authtoken]',
      'auth_section = Service_Auth',
      'password = wrong',
      'region_name = here',
      '[service_auth]',
      'password = right',
      'tenant_name = service',
      'region_name = there',
    ].join('\n');
    withConf(text, ({ load }) => {
      const { password, regionName, projectName, username } = load({ env: { OS_SERVICE_AUTH__USERNAME: 'u' } }).config
        .keystoneAuthtoken;
      assert.deepEqual([password, regionName, projectName, username], ['right', 'here', 'service', 'u']);
    });
  });
});

suite('files beside the configuration', () => {
  const policy = (
    files: Readonly<Record<string, string>>,
    more?: Pick<ConfigLocations, 'configFiles' | 'configDirs'>,
  ): readonly string[] =>
    withMachine(files, ({ root, load }) => {
      const { policyFile, policyDirs } = load(more).config.osloPolicy;
      return [policyFile, ...policyDirs].map((name) => path.relative(root, name));
    });

  test('are found beside placement.conf first', () => {
    const files = { 'etc/placement/placement.conf': '', 'etc/placement/policy.yaml': '', 'home/policy.yaml': '' };
    assert.deepEqual(policy(files), ['etc/placement/policy.yaml', 'etc/placement/policy.d']);
  });
  test('are found in the folders of placement.conf next', () => {
    const files = { 'etc/placement/placement.conf': '', 'home/policy.yaml': '', 'etc/policy.d/': '' };
    assert.deepEqual(policy(files), ['home/policy.yaml', 'etc/policy.d']);
  });
  test('are found in a --config-dir before these', () => {
    const files = { 'etc/placement/placement.conf': '', 'etc/placement/policy.yaml': '', 'd/policy.yaml': '' };
    assert.deepEqual(policy(files, { configDirs: ['d'] }), ['d/policy.yaml', 'etc/placement/policy.d']);
  });
  test('are found beside the last --config-file first', () => {
    const files = { 'a/1.conf': '', 'a/policy.yaml': '', 'b/2.conf': '', 'b/policy.yaml': '' };
    assert.deepEqual(policy(files, { configFiles: ['a/1.conf', 'b/2.conf'] }), ['b/policy.yaml', 'b/policy.d']);
  });
  test('policy.json is used if there is no policy.yaml', () => {
    assert.equal(
      policy({ 'etc/placement/placement.conf': '', 'etc/placement/policy.json': '' })[0],
      'etc/placement/policy.json',
    );
  });
  test('can be named by an option, also several directories', () => {
    const text = '[oslo_policy]\npolicy_file = sub/p.yaml\npolicy_dirs = one\npolicy_dirs = two\n';
    const found = policy({ 'etc/placement/placement.conf': text, 'etc/placement/policy.json': '', 'home/two/': '' });
    assert.deepEqual(found, ['etc/placement/sub/p.yaml', 'etc/placement/one', 'home/two']);
  });
});
