import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { type Hosts, hostsOf } from '../../../db/engine/host_list.ts';
import { maskUrls, readDatabaseUrl } from '../../../src/config/database_url.ts';

const good: readonly (readonly [written: string, url: string])[] = [
  ['postgresql://u:p@h/d', 'postgresql://u:p@h/d'],
  ['postgres://u:p@h:5433/d', 'postgresql://u:p@h:5433/d'],
  ['postgresql+psycopg2://u:p@h/d', 'postgresql://u:p@h/d'],
  ['postgresql+asyncpg://u@h/d', 'postgresql://u@h/d'],
  ['postgresql://h', 'postgresql://h'],
  ['postgresql:///d', 'postgresql:///d'],
  ['postgresql://u:p@[::1]:5432/d', 'postgresql://u:p@[::1]:5432/d'],
  ['postgresql://u:a/b#c?d:e@h/d', 'postgresql://u:a%2Fb%23c%3Fd%3Ae@h/d'],
  ['postgresql://u:a%40b%2Fc@h/d', 'postgresql://u:a%40b%2Fc@h/d'],
  ['postgresql://u:100%@h/d', 'postgresql://u:100%25@h/d'],
  ['postgresql://u:a%40%@h/d', 'postgresql://u:a%40%25@h/d'],
  ['postgresql://u:p@h/d?application_name=a%20b', 'postgresql://u:p@h/d?application_name=a+b'],
  ['postgresql://u:p@h/d?application_name=a@b', 'postgresql://u:p@h/d?application_name=a%40b'],
  ['postgresql://u:p@/d?host=/run/postgresql', 'postgresql://u:p@/d?host=%2Frun%2Fpostgresql'],
  ['postgresql://u:p@a,b:5433/d', 'postgresql://u:p@a,b:5433/d'],
  ['postgresql+psycopg2://a:1,[::1]:2,c/d', 'postgresql://a:1,[::1]:2,c/d'],
  [
    'postgresql://u:p@a,b/d?target_session_attrs=read-write&load_balance_hosts=random',
    'postgresql://u:p@a,b/d?target_session_attrs=read-write&load_balance_hosts=random',
  ],
  ['postgresql://u:p@/d?host=a,b&port=1,2', 'postgresql://u:p@/d?host=a%2Cb&port=1%2C2'],
  ['postgresql://u:p@/d?host=a:5433&host=b&host=::1', 'postgresql://u:p@/d?host=a%2Cb%2C%3A%3A1&port=5433%2C%2C'],
  ['postgresql+psycopg2://u:p@/d?host=a:5433', 'postgresql://u:p@/d?host=a&port=5433'],
  ['postgresql://u:p@h/d?sslmode=require', 'postgresql://u:p@h/d?sslmode=require&uselibpqcompat=true'],
  [
    'postgresql://u:p@h/d?sslmode=require&uselibpqcompat=false',
    'postgresql://u:p@h/d?sslmode=require&uselibpqcompat=false',
  ],
  ['postgresql://u:p@h/d?sslmode=allow', 'postgresql://u:p@h/d?sslmode=prefer&uselibpqcompat=true'],
];

const bad: readonly (readonly [written: string, says: RegExp])[] = [
  [
    'mysql+pymysql://u:p@h/d',
    /MySQL and MariaDB are not supported\..*bring the data there with "placement-manage import"/,
  ],
  ['mysql://u:p@h/d', /placement-manage import/],
  ['mariadb+pymysql://u:p@h/d', /placement-manage import/],
  ['sqlite://', /Leave the option unset to use the embedded database/],
  ['sqlite:////var/lib/placement.db', /Leave the option unset to use the embedded database/],
  ['oracle://u:p@h/d', /must be a URL of the form postgresql:\/\//],
  ['h/d', /must be a URL of the form/],
  ['postgresql:/h/d', /must be a URL of the form/],
  ['postgresql://u:p@h/a b', /must be a URL of the form/],
  ['postgresql://u:p@q@h/d', /as %40/],
  ['postgresql://u:p@q/w:rd?@h/d?sslmode=require', /as %40/],
  ['postgresql://u:p@q/w@h/d', /as %40/],
  ['postgresql://u:p@h:0/d', /port from 1 to 65535/],
  ['postgresql://u:p@h:70000/d', /port from 1 to 65535/],
  ['postgresql://u:p@a:1,b:x/d', /port from 1 to 65535/],
  ['postgresql://u:p@[::1]x/d', /port from 1 to 65535/],
  ['postgresql://u:p@/d?host=a,b,c&port=1,2', /one port, or one for each of the 3 hosts/],
  ['postgresql://u:p@a,b/d?target_session_attrs=master', /one of any, read-write, .* as target_session_attrs/],
  ['postgresql://u:p@a,b/d?load_balance_hosts=yes', /disable or random as load_balance_hosts/],
  ['postgresql://u:p@h/d?sslmode=verify_full', /one of disable, allow, .*, verify-full as sslmode/],
  ['postgresql://u:p@h/d?sslmode=verify-full&sslrootcert=system', /a file as sslrootcert, or none: .*use-system-ca/],
  ['postgresql://u:p@h:x/d', /port from 1 to 65535/],
];

suite('database URLs', () => {
  for (const [written, url] of good) test(written, () => assert.deepEqual(readDatabaseUrl(written), { value: url }));
  for (const [written, says] of bad) {
    test(written, () => {
      const reading = readDatabaseUrl(written);
      assert.match('problem' in reading ? reading.problem : '', says);
    });
  }

  test('node-postgres finds the same user, password and database as SQLAlchemy', () => {
    // pg-connection-string is CommonJS and comes with pg.
    const parse: (url: string) => Record<string, unknown> = createRequire(import.meta.resolve('pg'))(
      'pg-connection-string',
    );
    const part = fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((text) => !/[\s@:/%]/.test(text) && text.isWellFormed());
    fc.assert(
      fc.property(part, part, fc.stringMatching(/^[a-z][a-z_]{0,9}$/), (user, password, database) => {
        const reading = readDatabaseUrl(`postgresql+psycopg2://${user}:${password}/@h.example/${database}`);
        const parsed = parse('value' in reading ? (reading.value ?? '') : '');
        assert.deepEqual(
          { user: parsed.user, password: parsed.password, host: parsed.host, database: parsed.database },
          { user, password: `${password}/`, host: 'h.example', database },
        );
      }),
    );
  });
});

test('passwords in URLs are masked', () => {
  const masks: readonly (readonly [text: string, masked: string])[] = [
    ['postgresql://u:p@h/d', 'postgresql://u:***@h/d'],
    ['postgresql://u:a@b@h/d', 'postgresql://u:***@h/d'],
    ['postgresql://u:p@a:1,b:2/d', 'postgresql://u:***@a:1,b:2/d'],
    ['postgresql://u:a b/c:d@h/d', 'postgresql://u:***@h/d'],
    ['postgresql://:p@h/d', 'postgresql://:***@h/d'],
    ['postgresql://h/d?password=p&sslpassword=q&x=1', 'postgresql://h/d?password=***&sslpassword=***&x=1'],
    ['http://keystone:5000/v3', 'http://keystone:5000/v3'],
    ['no URL', 'no URL'],
  ];
  for (const [text, masked] of masks) assert.equal(maskUrls(text), masked);
});

test('the servers of a URL, and how one of them is chosen', () => {
  const usual: Hosts = { hosts: [], target: 'any', isTlsOptional: false, isRandom: false, connectTimeoutMs: undefined };
  const cases: readonly (readonly [url: string, hosts: Partial<Hosts>])[] = [
    ['//a,[::1]:5433,c/d', { hosts: at(['a', ''], ['[::1]', '5433'], ['c', '']) }],
    ['//x/d?host=a,/run&port=5433', { hosts: at(['a', '5433'], ['/run', '5433']) }],
    ['//x/d?host=a,b&port=1,2', { hosts: at(['a', '1'], ['b', '2']) }],
    ['//a/d?connect_timeout=2', { hosts: at(['a', '']), connectTimeoutMs: 2_000 }],
    ['//a/d?connect_timeout=0', { hosts: at(['a', '']) }],
    ['//a/d?sslmode=allow', { hosts: at(['a', '']), isTlsOptional: true }],
    ['//a/d?sslmode=prefer', { hosts: at(['a', '']), isTlsOptional: true }],
    ['//a/d?sslmode=require', { hosts: at(['a', '']) }],
    ['//a/d?load_balance_hosts=random', { hosts: at(['a', '']), isRandom: true }],
    ['//a/d?target_session_attrs=primary', { hosts: at(['a', '']), target: 'primary' }],
  ];
  for (const [url, hosts] of cases) assert.deepEqual(hostsOf(`postgresql:${url}`), { ...usual, ...hosts }, url);
  for (const query of ['host=a,b,c&port=1,2', 'host=a&port=1,2']) {
    assert.throws(() => hostsOf(`postgresql://x/d?${query}`), /one port, or one for each/, query);
  }
});

const at = (...hosts: readonly (readonly [host: string, port: string])[]) =>
  hosts.map(([host, port]) => ({ host, port }));
