import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { wrongValue } from '../../../src/config/load.ts';
import { newestVersion } from '../../support/requests.ts';
import { withConf, withMachine } from './machine.ts';

const conf = '/etc/placement/placement.conf';

/** The one line that is reported for a file. */
const mistakes: readonly (readonly [what: string, text: string, says: string])[] = [
  [
    'choice',
    '[api]\nauth_strategy = none',
    `${conf}:2: [api] auth_strategy = "none": must be one of keystone, tokens, noauth2.`,
  ],
  [
    'case of a choice',
    '[placement]\n\nallocation_candidates_generation_strategy = Depth-First',
    `${conf}:3: [placement] allocation_candidates_generation_strategy = "Depth-First": must be one of depth-first, breadth-first.`,
  ],
  [
    'a URL in the wrong place',
    '[cors]\nmax_age = http://u:hunter2@h',
    `${conf}:2: [cors] max_age = "http://u:***@h": must be an integer of at least 0.`,
  ],
  [
    'boolean',
    '[placement]\nrandomize_allocation_candidates = maybe',
    `${conf}:2: [placement] randomize_allocation_candidates = "maybe": must be true or false (or 1, on, yes, 0, off, no).`,
  ],
  [
    'empty boolean',
    '[DEFAULT]\ndebug =',
    `${conf}:2: [DEFAULT] debug = "": must be true or false (or 1, on, yes, 0, off, no).`,
  ],
  ['integer', '[api]\nport = 8k', `${conf}:2: [api] port = "8k": must be an integer from 0 to 65535.`],
  ['digits', '[api]\nport = 8_', `${conf}:2: [api] port = "8_": must be an integer from 0 to 65535.`],
  ['fraction', '[cors]\nmax_age = 1.5', `${conf}:2: [cors] max_age = "1.5": must be an integer of at least 0.`],
  ['too large', '[api]\nport = 65536', `${conf}:2: [api] port = "65536": must be an integer from 0 to 65535.`],
  [
    'too small',
    '[placement]\nmax_allocation_candidates = -2',
    `${conf}:2: [placement] max_allocation_candidates = "-2": must be an integer of at least -1.`,
  ],
  [
    'a service user without a password',
    '[keystone_authtoken]\nauth_type = v3applicationcredential',
    `${conf}:2: [keystone_authtoken] auth_type = "v3applicationcredential": must be one of password, v3password.`,
  ],
  [
    'consumer types that no consumer has',
    '[placement]\nuncounted_types = MIGRATION, unknown',
    `${conf}:2: [placement] uncounted_types = "MIGRATION, unknown": must be consumer types, of the letters A to Z, digits and _, and 'unknown' is none.`,
  ],
  [
    'comment after a value',
    '[api]\nport = 8778 # ours',
    `${conf}:2: [api] port = "8778 # ours": must be an integer from 0 to 65535.`,
  ],
  [
    'microversion',
    '[api]\nmax_microversion = 1.999',
    `${conf}:2: [api] max_microversion = "1.999": must be a version from 1.0 to 1.39, or from 2.0 to ${newestVersion}.`,
  ],
  [
    'microversion from before version 2',
    '[api]\nmax_microversion = 1.43',
    `${conf}:2: [api] max_microversion = "1.43": is 2.4 now.`,
  ],
  [
    'default version above the newest',
    '[api]\ndefault_version = 1.10\nmax_microversion = 1.9',
    `${conf}:2: [api] default_version = "1.10": must be at most [api] max_microversion, which is 1.9.`,
  ],
  [
    'MySQL',
    '[placement_database]\nconnection = mysql+pymysql://u:hunter2@h/d',
    `${conf}:2: [placement_database] connection = mysql+pymysql://***: MySQL and MariaDB are not supported. Write postgresql://user:password@host/database, and bring the data there with "placement-manage import".`,
  ],
  [
    'SQLite',
    '[placement_database]\nconnection = sqlite:///hunter2.db',
    `${conf}:2: [placement_database] connection = sqlite://***: SQLite is not supported. Leave the option unset to use the embedded database, or write postgresql://user:password@host/database.`,
  ],
  [
    'an empty connection',
    '[placement_database]\nconnection =',
    `${conf}:2: [placement_database] connection = "": must not be empty. Write postgresql://user:password@host/database, or leave the option out for the embedded database.`,
  ],
  [
    'no URL',
    '[placement_database]\nslave_connection = hunter2',
    `${conf}:2: [placement_database] slave_connection = ***: must be a URL of the form postgresql://user:password@host:port/database.`,
  ],
  [
    'plugin',
    '[keystone_authtoken]\nauth_type = v3token',
    `${conf}:2: [keystone_authtoken] auth_type = "v3token": must be one of password, v3password.`,
  ],
  [
    'older name',
    '[DEFAULT]\nauth_strategy = none',
    `${conf}:2: [DEFAULT] auth_strategy = "none": must be one of keystone, tokens, noauth2.`,
  ],
  [
    'substituted value',
    '[api]\nport = $host\nhost = localhost',
    `${conf}:2: [api] port = "$host" (which is "localhost"): must be an integer from 0 to 65535.`,
  ],
  [
    'substituted secret',
    '[api]\nport = $keystone_authtoken.password\n[keystone_authtoken]\npassword = hunter2',
    `${conf}:2: [api] port = "$keystone_authtoken.password": must be an integer from 0 to 65535.`,
  ],
  ['several lines', '[api]\nport = 1\n  2', `${conf}:2: [api] port = "1\\n2": must be an integer from 0 to 65535.`],
  [
    'a long value',
    `[api]\nport = ${'x'.repeat(500)}`,
    `${conf}:2: [api] port = "${'x'.repeat(100)}...": must be an integer from 0 to 65535.`,
  ],
  [
    'half of TLS',
    '[ssl]\nkey_file = k',
    `${conf}:2: [ssl] key_file = "k": needs [ssl] cert_file as well, which is not set.`,
  ],
  ['grammar', '[api]\nport', `${conf}:2: a line must be "option = value", but this one has neither "=" nor ":".`],
];

suite('each mistake in a file is one line', () => {
  for (const [what, text, says] of mistakes) {
    test(what, () => withConf(text, ({ problems }) => assert.deepEqual(problems(), [says])));
  }

  test('all mistakes are reported at once', () => {
    withConf('[api]\nport = x\nauth_strategy = y\n[cors]\nmax_age = z\n', ({ problems }) => {
      assert.deepEqual(
        problems().map((problem) => problem.split(' ')[0]),
        [`${conf}:3:`, `${conf}:2:`, `${conf}:5:`],
      );
    });
  });
});

suite('mistakes elsewhere', () => {
  test('a mistake in the environment is one line', () => {
    withMachine({}, ({ problems }) => {
      assert.deepEqual(problems({ env: { OS_API__PORT: 'x' } }), [
        'OS_API__PORT: [api] port = "x": must be an integer from 0 to 65535.',
      ]);
    });
  });

  test('a mistake in DATABASE_URL is one line', () => {
    withMachine({}, ({ problems }) => {
      const [problem = ''] = problems({ env: { DATABASE_URL: 'mysql://u:hunter2@h/d' } });
      assert.match(problem, /^DATABASE_URL: \[placement_database\] connection = mysql:\/\/\*\*\*: MySQL and MariaDB/);
      assert.doesNotMatch(problem, /hunter2/);
    });
  });

  test('a mistake on the command line is one line', () => {
    withMachine({}, ({ problems }) => {
      assert.deepEqual(problems({ overrides: [{ group: 'api', name: 'port', text: 'x', flag: '--port' }] }), [
        '--port: [api] port = "x": must be an integer from 0 to 65535.',
      ]);
    });
  });

  test('all missing files and directories are reported', () => {
    withMachine({ 'a.conf': '', 'folder/': '' }, ({ problems }) => {
      assert.deepEqual(problems({ configFiles: ['a.conf', 'b.conf', 'folder'], configDirs: ['d', 'a.conf'] }), [
        '/d: the configuration directory cannot be read: it does not exist.',
        '/a.conf: the configuration directory cannot be read: it is not a directory.',
        '/b.conf: the configuration file cannot be read: it does not exist.',
        '/folder: the configuration file cannot be read: it is a directory.',
      ]);
    });
  });

  test('a file that is not UTF-8 is reported', () => {
    withMachine({}, ({ root, problems }) => {
      mkdirSync(path.join(root, 'etc'));
      writeFileSync(path.join(root, 'etc/placement.conf'), Buffer.from('[api]\nhost = caf\xe9\n', 'latin1'));
      assert.deepEqual(problems(), [
        '/etc/placement.conf: the configuration file is not UTF-8. Save it in this encoding.',
      ]);
    });
  });
});

suite('a value that another part of the service refuses is one line', () => {
  const refused: readonly (readonly [what: string, text: string, env: Record<string, string>, says: string])[] = [
    ['in a file', '[metrics]\nshapes = a', {}, `${conf}:2: [metrics] shapes = "a": must not be.`],
    ['in the environment', '', { OS_METRICS__SHAPES: 'a' }, 'OS_METRICS__SHAPES: [metrics] shapes = "a": must not be.'],
    [
      'by reference',
      '[api]\nhost = a\n[metrics]\nshapes = $api.host',
      {},
      `${conf}:4: [metrics] shapes = "$api.host" (which is "a"): must not be.`,
    ],
    [
      'by reference to a secret',
      '[metrics]\nshapes = $keystone_authtoken.password\n[keystone_authtoken]\npassword = hunter2',
      {},
      `${conf}:2: [metrics] shapes = "$keystone_authtoken.password": must not be.`,
    ],
    ['by default', '', {}, '[metrics] shapes: must not be.'],
  ];
  for (const [what, text, env, says] of refused) {
    test(what, () =>
      withConf(text, ({ root, load }) => {
        const { problems } = wrongValue(load({ env }), ['metrics', 'shapes'], 'must not be');
        assert.deepEqual(problems, [says.replace(conf, root + conf)]);
      }),
    );
  }
});
