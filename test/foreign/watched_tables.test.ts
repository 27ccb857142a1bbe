/**
 * Tables without the triggers that log changes for the service: a dump replaced the tables, or the triggers were left
 * disabled.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { unwatchedTablesProblem } from '../../db/schema/watched_tables.ts';
import { runToEnd, withCommands } from '../manage/commands.ts';
import { upstreamSchemas } from '../manage/upstream_schema.ts';
import { execute } from '../support/postgresql.ts';
import { withDeployment } from './deployment.ts';

test('every disabled trigger that logs changes is reported', async () => {
  await withDeployment(async ({ service: { database } }) => {
    const { rows } = await sql<{ table: string; name: string }>`
      select tgrelid::regclass::text as table, tgname as name from pg_trigger where tgname like 'log\\_%'`.execute(
      database.kysely,
    );
    assert.ok(rows.length > 0);
    const set = (how: string, { table, name }: { table: string; name: string }) =>
      sql`alter table ${sql.table(table)} ${sql.raw(how)} trigger ${sql.id(name)}`.execute(database.kysely);
    for (const trigger of rows) {
      assert.equal(await unwatchedTablesProblem(database), undefined);
      await set('disable', trigger);
      const problem = (await unwatchedTablesProblem(database)) ?? '';
      assert.ok(problem.startsWith(`Changes of ${trigger.table} would go unnoticed`), `${trigger.name}: ${problem}`);
      await set('enable', trigger);
    }
  });
});

const upstreamAllocations = /create table allocations [^;]*/.exec(upstreamSchemas.a082b8bb98d0 ?? '')?.[0];

test('all commands refuse a database with a replaced table, and the remedy enables disabled triggers', async () => {
  await withCommands('postgresql', 'migrated', async ({ config, configFile, folder, run }) => {
    const url = config.connection ?? '';
    await execute(url, `drop table allocations; ${upstreamAllocations}; alter table traits disable trigger all`);
    const start = () => runToEnd('placement-api', ['--config-file', configFile, '--port', '0'], folder, {});
    const replaced = /Changes of allocations, traits would go unnoticed.* restore the dump into an empty database/;
    for (const { code, stderr } of [await start(), await run('placement-manage', 'db', 'sync')]) {
      assert.equal(code, 1);
      assert.match(stderr, replaced);
    }
    const migrate = await run('placement-manage', 'online-data-migrations');
    assert.equal(migrate.code, 2);
    assert.match(migrate.stderr, replaced);
    const check = await run('placement-status', 'upgrade', 'check', '--json');
    assert.equal(check.code, 2);
    assert.match(JSON.parse(check.stdout).checks.at(-1).details, replaced);
    const remedy = /Enable them: (.*;) Or/.exec(check.stdout)?.[1] ?? '';
    await execute(url, remedy);
    const { rows: disabled } = await execute(url, "select tgname from pg_trigger where tgenabled = 'D'");
    assert.deepEqual(disabled, [], 'and no trigger of a foreign key is disabled either');
    const { stderr } = await start();
    assert.match(stderr, /Changes of allocations would go unnoticed/);
  });
});
