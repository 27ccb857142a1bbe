/** Sources that cannot be imported, and connections to them. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { importFrom, type TargetDatabase, withTarget } from '../import/import.ts';
import { type Mariadb, passwordSpellings, startMariadb } from '../import/mariadb.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { type Ended, runToEnd } from '../manage/commands.ts';
import { upstreamSchemas } from '../manage/upstream_schema.ts';
import { upstreamDbSync } from './placement.ts';

suite('sources and targets that are refused', () => {
  const certificate = selfSigned();
  let folder: string;
  let mariadb: Mariadb;
  let source: string;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'placement-import-'));
    await writeFile(path.join(folder, 'ca.pem'), certificate.cert);
    await writeFile(path.join(folder, 'other.pem'), selfSigned().cert);
    mariadb = await startMariadb(certificate);
    source = await mariadb.createDatabase('cloud');
    await upstreamDbSync(source);
  });

  after(async () => {
    await mariadb?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function refused(url: string, says: RegExp, exits = 1): Promise<void> {
    await withTarget(async (target) => {
      const { code, stderr } = await importFrom(url, target);
      assert.equal(code, exits);
      assert.match(stderr, says);
      assert.deepEqual(
        (await target.sql.query('select from pg_tables where schemaname = current_schema()')).rowCount,
        0,
      );
    });
  }

  test('a source that is not a database of Placement is refused', async () => {
    const url = await mariadb.createDatabase('cloud_empty');
    await refused(
      url,
      /cloud_empty is no database of OpenStack Placement\. Name a database of Placement \(not Nova's\)/,
    );
    await mariadb.execute('cloud_empty', 'create table alembic_version (version_num varchar(32) not null)');
    await refused(url, /cloud_empty is no database of OpenStack Placement\./);
    await mariadb.execute('cloud_empty', "insert into alembic_version values ('d46a9d9a8e3c')");
    await refused(
      url,
      /cloud_empty is at the unknown revision d46a9d9a8e3c\. .* at one of the revisions b4ed3a175331, /,
    );
    await mariadb.execute('cloud_empty', "update alembic_version set version_num = 'a082b8bb98d0'");
    await refused(url, /cloud_empty lacks traits\.created_at, .*\. Name a complete database of Placement/);
  });

  test('a wrong password, user or database is refused', async () => {
    const wrong = source.replace(/:[^:@]*@/, ':wrong@');
    await refused(
      wrong,
      /refuses the login: Access denied for user 'placement'.* Correct user and password; the user needs/,
      77,
    );
    await refused(
      source.replace('/cloud?', '/elsewhere?'),
      /refuses the login: Access denied .*to database 'elsewhere'/,
      77,
    );
    await refused(
      source.replace('/cloud?', '/cloud_nowhere?'),
      /Unknown database 'cloud_nowhere'\. Correct the name of the database/,
    );
  });

  test('a user who may connect but not read is refused', async () => {
    await mariadb.execute('cloud', "alter user placement@'%' with max_queries_per_hour 1");
    try {
      await refused(source, /cannot be read: User 'placement' has exceeded the 'max_queries_per_hour' resource/);
    } finally {
      await mariadb.execute('cloud', "alter user placement@'%' with max_queries_per_hour 0", 'flush user_resources');
    }
  });

  test('a target with data is refused, and stays as it is', async () => {
    await withTarget(async (target) => {
      await target.sql.query(upstreamSchemas['422ece571366'] ?? '');
      await target.sql.query(`insert into resource_providers (uuid, name) values ('u', 'host')`);
      await target.sql.query(`insert into traits (name) values ('HW_CPU_X86_AVX2'), ('CUSTOM_FAST')`);
      const { code, stdout, stderr } = await importFrom(source, target);
      assert.equal(code, 1);
      assert.equal(stdout, '');
      assert.match(
        stderr,
        /^placement-manage: The target is not empty: it holds 1 traits, 1 resource_providers\. Import into/,
      );
      assert.deepEqual((await target.sql.query('select name from traits order by id')).rows, [
        { name: 'HW_CPU_X86_AVX2' },
        { name: 'CUSTOM_FAST' },
      ]);
      assert.deepEqual((await target.sql.query(`select to_regclass('kysely_migration') as made`)).rows, [
        { made: null },
      ]);
    });
  });

  test('encrypted connections need the right certificate', async () => {
    await mariadb.execute('cloud', "alter user placement@'%' require ssl");
    try {
      await refused(source, /Access denied for user 'placement'/);
      const named = source.replace('127.0.0.1', 'localhost');
      const other = `${named}&ssl_ca=${path.join(folder, 'other.pem')}`;
      await refused(other, /cannot be reached: .*certificate.* Correct the ssl_ parameters at the end of the URL/);
      for (const url of [
        `${named}&ssl_ca=${path.join(folder, 'ca.pem')}`,
        `${source}&ssl_ca=${path.join(folder, 'ca.pem')}&ssl_check_hostname=false`,
        `${source}&ssl_mode=REQUIRED`,
      ]) {
        await withTarget(async (target) => assert.equal((await importFrom(url, target)).code, 0, url));
      }
    } finally {
      await mariadb.execute('cloud', "alter user placement@'%' require none");
    }
  });

  test('the URL can come from a configuration file, and the password from the environment', async () => {
    const withoutPassword = source.replace(/:[^:@]*@/, '@');
    const file = path.join(folder, 'placement.conf');
    for (const [written, environment] of [
      [source, {}],
      [withoutPassword, { MYSQL_PWD: passwordSpellings[0] ?? '' }],
    ] as const) {
      await writeFile(file, `[placement_database]\nconnection = ${written}\n`);
      await withTarget(async (target) => {
        const ended = await importByFile(file, target, environment);
        assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: '' });
        assert.match(ended.stdout, /^Verified: /m);
      });
    }
  });
});

const importByFile = (
  file: string,
  { url }: TargetDatabase,
  environment: Readonly<Record<string, string>>,
): Promise<Ended> =>
  runToEnd('placement-manage', ['import', '--from-config', file], '/', { DATABASE_URL: url, ...environment });
