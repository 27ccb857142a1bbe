/** Several services on one PostgreSQL are replaced one by one under load, also while the schema changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Migration, sql } from 'kysely';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { openClient } from '../races/client.ts';
import { freePort } from '../support/free_port.ts';
import { execute } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import { buildStock, checkLoad, startLoad } from '../workers/load.ts';

/** A migration of a later version: it only adds parts that the present version does not need to know. */
const ofLaterVersion = (version: number): Migration => ({
  up: async (db) => {
    const added = sql.id(`of_version_${version}`);
    for (const table of ['resource_providers', 'inventories', 'allocations', 'consumers', 'traits']) {
      await sql`alter table ${sql.table(table)} add column ${added} text default 'x'`.execute(db);
    }
    await sql`create index on consumers (${added})`.execute(db);
    await sql`create table ${added} (id bigint primary key)`.execute(db);
  },
});

test('a rolling upgrade under load loses no acknowledged write, and a repeated request succeeds', async (t) => {
  await withCommands('postgresql', 'migrated', async (world) => {
    const ports = [await freePort(), await freePort(), await freePort()];
    const start = async (port: number) => {
      const args = ['--config-file', world.configFile, '--port', String(port)];
      const server = startCommand('placement-api', args, world.folder);
      await server.said(/^placement-api \S+ listens on /m);
      return server;
    };
    const servers = new Map<number, Awaited<ReturnType<typeof start>>>();
    for (const port of ports) servers.set(port, await start(port));
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const first = openClient(urls[0] ?? '');
    const stock = await buildStock(first);
    first.close();

    const load = startLoad(urls, stock, 12);
    const someAnswers = async () => {
      const before = load.answered();
      await until('answers', () => load.answered() > before + 60);
    };
    const replace = async (port: number, signal: NodeJS.Signals) => {
      const server = servers.get(port);
      server?.child.kill(signal);
      assert.equal((await server?.ended)?.code, signal === 'SIGTERM' ? 0 : null);
      await someAnswers();
      servers.set(port, await start(port));
      await someAnswers();
    };
    await someAnswers();
    // Repeated, because both the migrations and the requests lock many tables, and one of the two may lose a deadlock.
    let all = migrations;
    for (const version of [901, 902, 903]) {
      all = { ...all, [version]: ofLaterVersion(version) };
      await world.withDatabase((database) => migrateToLatest(database, all));
      await someAnswers();
    }
    for (const port of ports) await replace(port, 'SIGTERM');
    await replace(ports[1] ?? 0, 'SIGKILL');
    await load.stop();

    const { connection = '' } = world.config;
    await checkLoad(async (statement) => (await execute(connection, statement)).rows, load, stock);
    assert.deepEqual(load.failed, []);
    t.diagnostic(`${load.broken.length} connections broke; ${JSON.stringify(Object.fromEntries(load.answers))}`);
    assert.deepEqual(
      [...load.answers.keys()].filter((answer) => /5\d\d$/.test(answer)),
      [],
    );
  });
});
