import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { type DatabaseSettings, openDatabase } from '../db/engine/connect.ts';
import { migrateToLatest } from '../db/schema/migrate.ts';
import { syncStandardNames } from '../db/schema/sync_standard_names.ts';
import { databaseUrl } from './postgresql.ts';

/*
 * A database with the schema and the standard names is made once. Each test gets a copy, which takes a tenth of a
 * second. The name of the database contains a hash of the folder db/, so that an outdated one is never used.
 */

/**
 * The dump of an embedded database with the schema and the standard names, for `openDatabase`'s `template`. It is kept
 * in the temporary folder of the system, for the next process.
 */
export function embeddedTemplate(): Promise<Blob> {
  dump ??= readOrMakeDump();
  return dump;
}

let dump: Promise<Blob> | undefined;

async function readOrMakeDump(): Promise<Blob> {
  const prefix = `placement-test-${process.getuid?.() ?? ''}-`;
  const file = path.join(os.tmpdir(), `${prefix}${await hashOfDb()}.tar`);
  const kept = await readFile(file).catch(() => undefined);
  if (kept !== undefined) return new Blob([kept]);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-template-'));
  try {
    await fill({ embeddedPath: folder });
    const pglite = await PGlite.create(path.join(folder, 'postgresql'));
    // The service does not need these databases, and without them a copy takes half the time.
    await pglite.exec("update pg_database set datistemplate = false where datname like 'template%'");
    for (const name of ['template0', 'template1']) await pglite.exec(`drop database ${name}`);
    const made = await pglite.dumpDataDir('none');
    await pglite.close();
    const unfinished = `${file}.${randomUUID()}`;
    await writeFile(unfinished, Buffer.from(await made.arrayBuffer()), { mode: 0o600 });
    await rename(unfinished, file);
    for (const old of await readdir(os.tmpdir())) {
      const outdated = old.startsWith(prefix) && old.endsWith('.tar') && old !== path.basename(file);
      if (outdated) await rm(path.join(os.tmpdir(), old), { force: true });
    }
    return made;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Makes the embedded database of a folder as a first start leaves it, with a quarter of the CPU time of a first start.
 */
export async function fillEmbedded(embeddedPath: string): Promise<void> {
  const database = await openDatabase({ embeddedPath, template: await embeddedTemplate() });
  await database.close();
}

/**
 * The name of a database on the server that has the schema and the standard names, for `createDatabase`'s template. The
 * first process that needs it makes it.
 */
export async function postgresqlTemplate(serverUrl: string): Promise<string> {
  const name = `template_${await hashOfDb()}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    // The lock ends with the connection, so a process that is killed here does not block the others.
    await client.query("select pg_advisory_lock(hashtext('template of the tests'))");
    const found = await client.query('select from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) {
      await client.query(`drop database if exists ${name}_unfinished`);
      await client.query(`create database ${name}_unfinished template template0`);
      await fill({ connection: databaseUrl(serverUrl, `${name}_unfinished`), maxPoolSize: 1 });
      await client.query(`alter database ${name}_unfinished rename to ${name}`);
    }
    return name;
  } finally {
    await client.end();
  }
}

async function fill(settings: DatabaseSettings): Promise<void> {
  const database = await openDatabase(settings);
  try {
    await migrateToLatest(database);
    await syncStandardNames(database);
  } finally {
    await database.close();
  }
}

async function hashOfDb(): Promise<string> {
  const folder = path.join(import.meta.dirname, '..', 'db');
  const hash = createHash('sha256');
  for (const file of (await readdir(folder, { recursive: true })).toSorted()) {
    if (file.endsWith('.ts')) hash.update(`${file}\0`).update(await readFile(path.join(folder, file)));
  }
  return hash.digest('hex').slice(0, 16);
}
