/** MariaDB databases of the real OpenStack Placement that are old, or have bad data. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { importFrom, type TargetDatabase, withTarget } from '../import/import.ts';
import { type Mariadb, startMariadb } from '../import/mariadb.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { compareAnswers } from './answers.ts';
import { type Deployment, deployByApi } from './deployment.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

suite('MariaDB databases of OpenStack Placement that are old or damaged', () => {
  let mariadb: Mariadb;

  before(async () => {
    mariadb = await startMariadb();
  });

  after(async () => {
    await mariadb?.stop();
  });

  /** Calls back with a separate deployment on MariaDB, which upstream serves. */
  async function withCloud(name: string, use: (cloud: Cloud) => Promise<void>): Promise<void> {
    const url = await mariadb.createDatabase(name);
    await upstreamDbSync(url);
    const upstream = await startUpstream(url);
    try {
      const deployment = await deployByApi(upstream.client);
      await use({ url, upstream, deployment, execute: (...statements) => mariadb.execute(name, ...statements) });
    } finally {
      await upstream.stop();
    }
  }

  test('a source from before consumer types, in Latin-1, is imported', async () => {
    await withCloud('cloud_first', async ({ url, execute, deployment }) => {
      const [foreignKey] = await execute(`select constraint_name from information_schema.key_column_usage
        where table_schema = database() and table_name = 'consumers' and column_name = 'consumer_type_id'`);
      await execute(
        `alter table consumers drop foreign key ${foreignKey?.[0]}`,
        'alter table consumers drop column consumer_type_id',
        'drop table consumer_types',
        "update alembic_version set version_num = 'b4ed3a175331'",
        'alter table projects convert to character set latin1',
      );
      await withImported(url, async (target, { stdout }, server) => {
        assert.match(stdout, /^The source .*cloud_first is at revision b4ed3a175331\.$/m);
        assert.match(stdout, /^consumers: 6 rows$/m);
        const { rows } = await target.sql.query('select external_id from projects order by external_id collate "C"');
        assert.deepEqual(rows, [{ external_id: 'projet-é-0' }, { external_id: 'projet-é-1' }]);
        const [consumer] = deployment.consumers;
        const reply = await server.client.send('GET', `/allocations/${consumer}`, 38);
        assert.equal((reply.body as { readonly consumer_type: string }).consumer_type, 'unknown');
      });
    });
  });

  test('invalid times, and a consumer whose allocations have its UUID in capitals, are imported', async () => {
    await withCloud('cloud_odd', async ({ url, execute, upstream, deployment }) => {
      await execute(
        "set sql_mode = ''",
        "update users set created_at = '0000-00-00 00:00:00'",
        'update allocations set consumer_id = upper(consumer_id)',
        "update alembic_version set version_num = 'a082b8bb98d0'",
      );
      await withImported(url, async (target, _, server) => {
        await compareAnswers(upstream.client, server.client, deployment);
        const { rows } = await target.sql.query('select created_at from users');
        assert.deepEqual(rows, [{ created_at: null }]);
      });
    });
  });

  test('rows that refer to missing rows are reported, copied, and not visible to clients, as before', async () => {
    await withCloud('cloud_orphans', async ({ url, execute, upstream, deployment }) => {
      const [row] = await execute(`select min(resource_provider_id), min(resource_class_id) from inventories`);
      const [consumer] = deployment.consumers;
      await execute(
        `insert into allocations (resource_provider_id, consumer_id, resource_class_id, used) values
          (8888, '${consumer}', ${row?.[1]}, 5), (9999, 'c0000000-0000-4000-8000-000000000001', ${row?.[1]}, 5)`,
        `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
          allocation_ratio) values (9999, ${row?.[1]}, 5, 0, 1, 5, 1, 1.0)`,
        'insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (9999, 1)',
      );
      await withImported(url, async (target, { stdout }, server) => {
        const warnings = stdout.split('\n').filter((line) => line.startsWith('Warning: '));
        assert.deepEqual(
          warnings,
          [
            'inventories: 1 row has a resource_provider_id that resource_providers does not have (such as 9999)',
            'resource_provider_aggregates: 1 row has a resource_provider_id that resource_providers does not have (such as 9999)',
            'allocations: 2 rows have a resource_provider_id that resource_providers does not have (such as 8888)',
          ].map((what) => `Warning: ${what}. They are copied as they are; clients do not see them, as before.`),
        );
        await compareAnswers(upstream.client, server.client, deployment);
        const { rows } = await target.sql.query('select count(*)::integer as count from allocations where used = 5');
        assert.ok(rows[0]?.count >= 2);
      });
    });
  });

  test('data that cannot be stored is reported completely, and the suggested statements correct it', async () => {
    await withCloud('cloud_broken', async ({ url, execute, upstream, deployment }) => {
      const last = `(select max(id) from (select id from resource_providers) as all_of_them)`;
      await execute(
        'set foreign_key_checks = 0',
        `update resource_providers set parent_provider_id = 7777 where id = ${last}`,
        'insert into resource_provider_traits (trait_id, resource_provider_id) values (7777, 1), (1, 7777)',
        'update consumers set consumer_type_id = 7777 limit 2',
        "update users set external_id = concat('a', char(0), 'b')",
      );
      await withTarget(async (target) => {
        const { code, stderr } = await importFrom(url, target);
        assert.equal(code, 1);
        const [head, ...problems] = stderr.trim().split('\n');
        assert.equal(head, 'placement-manage: The source holds data that cannot be imported:');
        assert.deepEqual(
          problems.map((problem) => problem.replace(/ Correct the source: .*;$/, '')),
          [
            'resource_providers: 1 row has a parent_provider_id that resource_providers does not have (such as 7777), which cannot be stored.',
            'resource_provider_traits: 1 row has a trait_id that traits does not have (such as 7777), which cannot be stored.',
            'resource_provider_traits: 1 row has a resource_provider_id that resource_providers does not have (such as 7777), which cannot be stored.',
            'consumers: 2 rows have a consumer_type_id that consumer_types does not have (such as 7777), which cannot be stored.',
            'users: 1 row has a NUL in external_id, which cannot be stored.',
          ],
        );
        const { rows } = await target.sql.query(`select to_regclass('traits') as made`);
        assert.deepEqual(rows, [{ made: null }], 'the target is unchanged');
        for (const problem of problems) await execute(/Correct the source: (.*);$/.exec(problem)?.[1] ?? '');
      });
      await withImported(url, (_target, _ended, server) => compareAnswers(upstream.client, server.client, deployment));
    });
  });
});

type Cloud = {
  readonly url: string;
  readonly upstream: Upstream;
  readonly deployment: Deployment;
  execute(...statements: readonly string[]): Promise<readonly (readonly unknown[])[]>;
};

/** Imports a deployment, and calls back with a service on the copy. */
async function withImported(
  source: string,
  use: (target: TargetDatabase, ended: { readonly stdout: string }, server: ServerProcess) => Promise<unknown>,
): Promise<void> {
  await withTarget(async (target) => {
    const ended = await importFrom(source, target);
    assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: '' });
    const server = await startServer({ connection: target.url });
    try {
      await use(target, ended, server);
    } finally {
      await server.kill();
    }
  });
}
