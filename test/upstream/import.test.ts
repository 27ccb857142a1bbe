/**
 * A deployment that the real OpenStack Placement made on MariaDB is imported, and both services have the same answers.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { upstreamTables } from '../../db/schema/upstream_tables.ts';
import { importFrom, startImport, type TargetDatabase, withTarget } from '../import/import.ts';
import { type Mariadb, startMariadb } from '../import/mariadb.ts';
import { runToEnd } from '../manage/commands.ts';
import { succeed } from '../races/client.ts';
import { startServer } from '../races/server_process.ts';
import { inFolder } from '../support/in_folder.ts';
import { compareAnswers } from './answers.ts';
import { type Deployment, deployByApi, deployBySql } from './deployment.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

suite('a MariaDB database of OpenStack Placement', () => {
  let mariadb: Mariadb;
  let source: string;
  let upstream: Upstream;
  let deployment: Deployment;

  before(async () => {
    mariadb = await startMariadb();
    source = await mariadb.createDatabase('cloud');
    await upstreamDbSync(source);
    upstream = await startUpstream(source);
    const execute = (statement: string) => mariadb.execute('cloud', statement);
    deployment = await deployBySql(execute, await deployByApi(upstream.client), 100_000);
  });

  after(async () => {
    await upstream?.stop();
    await mariadb?.stop();
  });

  /** How many rows the source has, by table. */
  async function countSource(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { name } of upstreamTables) {
      counts[name] = Number((await mariadb.execute('cloud', `select count(*) from ${name}`))[0]?.[0]);
    }
    return counts;
  }

  test('100,000 allocations are imported into PostgreSQL, and the answers are equal', async (t) => {
    await withTarget(async (target) => {
      const begunMs = Date.now();
      const ended = await importFrom(source, target);
      t.diagnostic(`imported in ${Date.now() - begunMs} ms`);
      assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: '' });
      const counts = await countSource();
      assert.ok((counts.allocations ?? 0) >= 100_000);
      for (const [table, count] of Object.entries(counts)) {
        if (count > 0) assert.match(ended.stdout, new RegExp(`^${table}: ${count} rows?$`, 'm'));
      }
      assert.match(ended.stdout, /^Verified: every table has the same number of rows and the same checksum/m);

      const server = await startServer({ connection: target.url });
      try {
        const { traits, resource_classes, ...others } = counts;
        for (const [table, count] of Object.entries(others)) {
          assert.deepEqual(await server.query(`select count(*)::integer as count from ${table}`), [{ count }], table);
        }
        t.diagnostic(`${await compareAnswers(upstream.client, server.client, deployment)} answers compared`);
        const migrated = await runToEnd('placement-manage', ['online-data-migrations', '--max-count', '1000'], '/', {
          DATABASE_URL: target.url,
        });
        assert.equal(migrated.code, 1, 'entity tags were made');
        // New rows get new ids.
        await succeed(server.client, 'POST', '/resource_providers', 38, { name: 'new' });
        await succeed(server.client, 'PUT', '/traits/CUSTOM_NEW', 38);
        await succeed(server.client, 'PUT', '/resource_classes/CUSTOM_NEW', 38);
      } finally {
        await server.kill();
      }
      const again = await importFrom(source, target);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /^placement-manage: The target is not empty: it holds 2 traits, 2 resource_classes, /);
      assert.match(again.stderr, /Import into an empty database/);
    });
  });

  test('the import also works into the embedded database', async (t) => {
    await inFolder(async (folder) => {
      const begunMs = Date.now();
      const ended = await runToEnd('placement-manage', ['import', '--from', source], folder);
      t.diagnostic(`imported in ${Date.now() - begunMs} ms`);
      assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: '' });
      const server = await startServer({ connection: undefined, embeddedPath: path.join(folder, 'placement-data') });
      try {
        await compareAnswers(upstream.client, server.client, deployment);
      } finally {
        await server.kill();
      }
    });
  });

  test('after each kill the import continues, and another source is refused', async (t) => {
    await withTarget(async (target) => {
      let first: readonly unknown[] | undefined;
      for (const allocations of [1, 30_000, 70_000]) {
        const copied = await importUntil(source, target, allocations);
        assert.ok(copied >= allocations && copied < deployment.allocationCount, `killed at ${copied}`);
        t.diagnostic(`killed with ${copied} allocations`);
        const { rows } = await target.sql.query('select xmin::text, * from allocations order by id limit 1000');
        assert.deepEqual(rows, first ?? rows, 'rows that were copied are not copied again');
        first = rows;
      }
      await mariadb.createDatabase('cloud2');
      const other = await importFrom(source.replace('/cloud?', '/cloud2?'), target);
      assert.equal(other.code, 1);
      const name = `mysql://127.0.0.1:${mariadb.port}/cloud`;
      assert.match(other.stderr, /^placement-manage: The target holds an unfinished import from /);
      assert.ok(
        other.stderr.includes(`from ${name} (begun 2`) && other.stderr.includes(`, not from ${name}2.`),
        other.stderr,
      );

      const ended = await importFrom(source, target);
      assert.deepEqual({ code: ended.code, stderr: ended.stderr }, { code: 0, stderr: '' });
      assert.match(ended.stdout, /^Continuing the import that was begun 2.*Z\.$/m);
      assert.match(ended.stdout, /^Verified:/m);
      const { rows } = await target.sql.query('select xmin::text, * from allocations order by id limit 1000');
      assert.deepEqual(rows, first);
      const count = await target.sql.query('select count(*)::integer as count from allocations');
      assert.deepEqual(count.rows, [{ count: deployment.allocationCount }]);
      assert.deepEqual((await target.sql.query(`select to_regclass('unfinished_import') as left`)).rows, [
        { left: null },
      ]);
      const loose = await target.sql.query('select conname from pg_constraint where condeferrable');
      assert.deepEqual(loose.rows, [], 'the foreign keys are as before');
      const off = await target.sql.query(`select tgname from pg_trigger where tgenabled <> 'O'`);
      assert.deepEqual(off.rows, [], 'the triggers are as before');
    });
  });

  test('if the source has changed since the kill, the import starts over', async () => {
    await withTarget(async (target) => {
      await importUntil(source, target, 1);
      const [row] = await mariadb.execute('cloud', 'select min(id) from consumers');
      await mariadb.execute('cloud', `update consumers set generation = generation + 1 where id = ${row?.[0]}`);
      const ended = await importFrom(source, target);
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(
        ended.stdout,
        /^The copied rows of consumers are not those of the source now: the import starts over\.$/m,
      );
      const { rows } = await target.sql.query(`select generation from consumers where id = ${row?.[0]}`);
      const [there] = await mariadb.execute('cloud', `select generation from consumers where id = ${row?.[0]}`);
      assert.deepEqual(rows, [{ generation: there?.[0] }]);
    });
  });

  test('a copy that another client has written to is not accepted, and is made again', async () => {
    await withTarget(async (target) => {
      await importUntil(source, target, 1);
      await target.sql.query(`create function write_too() returns trigger language plpgsql as $$ begin
        insert into projects (id, external_id) values (1000000, 'stranger') on conflict do nothing; return null; end $$`);
      await target.sql.query(`create trigger write_too after update on unfinished_import
        for each statement execute function write_too()`);
      const failed = await importFrom(source, target);
      assert.equal(failed.code, 1);
      assert.match(
        failed.stderr,
        /^placement-manage: The copy is not what the source holds\. Another client has written to the target\. Stop it, .*\nprojects: 2 rows with checksum \d+ in the source, 3 with \d+ here\n$/,
      );
      await target.sql.query('drop function write_too cascade');
      const ended = await importFrom(source, target);
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(
        ended.stdout,
        /^The copied rows of projects are not those of the source now: the import starts over\.$/m,
      );
      assert.match(ended.stdout, /^Verified:/m);
    });
  });

  test('two imports cannot run at the same time', async () => {
    await withTarget(async (target) => {
      const one = startImport(source, target);
      await untilCopied(target, 1);
      const other = await importFrom(source, target);
      assert.deepEqual(other, {
        code: 1,
        stdout: '',
        stderr: 'placement-manage: Another import into this database is running. Wait for its end.\n',
      });
      assert.equal((await one.ended).code, 0);
    });
  });
});

/** Kills the command (SIGKILL) as soon as there are so many allocations. @returns how many there are */
async function importUntil(source: string, target: TargetDatabase, allocations: number): Promise<number> {
  const { child, ended } = startImport(source, target);
  await untilCopied(target, allocations);
  child.kill('SIGKILL');
  assert.deepEqual((await ended).code, null);
  // The server may still commit statements that it has received.
  const others = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and backend_type = 'client backend'`;
  while ((await target.sql.query(others)).rowCount !== 0) await sleep(20);
  return countAllocations(target);
}

async function untilCopied(target: TargetDatabase, allocations: number): Promise<void> {
  while ((await countAllocations(target)) < allocations) await sleep(5);
}

async function countAllocations({ sql }: TargetDatabase): Promise<number> {
  const there = await sql.query(`select to_regclass('allocations') is not null as there`);
  if (!there.rows[0]?.there) return 0;
  return (await sql.query('select count(*)::integer as count from allocations')).rows[0]?.count ?? 0;
}
