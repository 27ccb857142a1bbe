import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { nameOfSource, readSourceUrl, type SourceSettings } from '../../../src/manage/import/source.ts';

const plain: SourceSettings = {
  host: 'db.example.com',
  port: 3306,
  socketPath: undefined,
  user: 'placement',
  password: 'secret',
  database: 'placement',
  tls: undefined,
};
const encrypted = { caFile: undefined, certFile: undefined, keyFile: undefined };
const unverified = { ...encrypted, verifyCertificate: false, verifyHost: false };
const verified = { ...encrypted, verifyCertificate: true, verifyHost: true };
const withCa = { ...verified, caFile: '/ca.pem' };

const url = 'mysql+pymysql://placement:secret@db.example.com/placement';
const good: readonly (readonly [written: string, differs: Partial<SourceSettings>])[] = [
  [url, {}],
  ['mysql://placement:secret@db.example.com/placement', {}],
  ['mariadb+mariadbconnector://placement:secret@db.example.com/placement', {}],
  [`${url}?charset=utf8`, {}],
  [`${url}?charset=utf8mb4&read_timeout=30`, {}],
  ['mysql+pymysql://placement:secret@db.example.com:3307/placement', { port: 3307 }],
  ['mysql+pymysql://placement:secret@[2001:db8::1]:3307/placement', { host: '2001:db8::1', port: 3307 }],
  ['mysql+pymysql://placement:a%40b%2Fc:d@db.example.com/placement', { password: 'a@b/c:d' }],
  ['mysql+pymysql://placement@db.example.com/placement', { password: undefined }],
  ['mysql+pymysql://placement:@db.example.com/placement', { password: '' }],
  ['mysql+pymysql://db.example.com/placement', { user: undefined, password: undefined }],
  [
    'mysql+pymysql://placement:secret@/placement?unix_socket=/run/mysqld/mysqld.sock',
    { host: 'localhost', socketPath: '/run/mysqld/mysqld.sock' },
  ],
  [`${url}?ssl_ca=/ca.pem`, { tls: withCa }],
  [`${url}?ssl_ca=/ca.pem&ssl_check_hostname=false`, { tls: { ...withCa, verifyHost: false } }],
  [
    `${url}?ssl_ca=/ca.pem&ssl_cert=/cert.pem&ssl_key=/key.pem`,
    { tls: { ...withCa, certFile: '/cert.pem', keyFile: '/key.pem' } },
  ],
  [`${url}?ssl=true`, { tls: unverified }],
  [`${url}?ssl=false`, {}],
  [`${url}?ssl_verify_cert=true`, { tls: verified }],
  [`${url}?ssl_verify_cert=false`, {}],
  [`${url}?ssl_mode=REQUIRED`, { tls: unverified }],
  [`${url}?ssl_mode=VERIFY_CA`, { tls: { ...verified, verifyHost: false } }],
  [`${url}?ssl_mode=VERIFY_IDENTITY`, { tls: verified }],
  [`${url}?ssl_mode=PREFERRED`, {}],
  [`${url}?ssl_mode=DISABLED&ssl_ca=/ca.pem`, {}],
];

const bad: readonly (readonly [written: string, says: RegExp])[] = [
  ['postgresql://u:p@h/d', /^must be a URL of the form mysql:\/\/user:password@host:port\/database$/],
  ['placement', /must be a URL of the form/],
  ['mysql://u:p@h', /^must name the database/],
  ['mysql://u:p@h/', /^must name the database/],
  ['mysql://u:p@a,b:3307/d', /^must name one host/],
  ['mysql://u:p@q@h/d', /as %40/],
  ['mysql://u:p@ss/w:rd?@127.0.0.1/d?charset=utf8', /as %40/],
  [
    'mysql://u:p@192.0.2.1/d?ssl_ca=/ca.pem',
    /^must have the name in the certificate instead of 192\.0\.2\.1, or end with/,
  ],
  ['mysql://u:p@h:0/d', /port from 1 to 65535/],
];

suite('the URL of a source', () => {
  for (const [written, differs] of good) {
    test(written, () => assert.deepEqual(readSourceUrl(written), { value: { ...plain, ...differs } }));
  }
  for (const [written, says] of bad) {
    test(written, () => {
      const reading = readSourceUrl(written);
      assert.match('problem' in reading ? reading.problem : '', says);
    });
  }
});

test('the name of a source has its address and database, without user and password', () => {
  assert.equal(nameOfSource(plain), 'mysql://db.example.com:3306/placement');
  assert.equal(nameOfSource({ ...plain, host: '::1' }), 'mysql://[::1]:3306/placement');
  assert.equal(nameOfSource({ ...plain, socketPath: '/run/mysqld.sock' }), 'mysql:///run/mysqld.sock/placement');
});
