import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type DatabaseSettings, openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { databaseUrl } from './postgresql.ts';

/*
 * A database with the schema and the standard names is made once. Each test gets a copy, which takes a tenth of a
 * second. The name of the database contains a hash of the code that makes it, so that an outdated one is never used.
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
  const file = path.join(os.tmpdir(), `${prefix}${await hashOfSchema()}.tar`);
  const lock = `${file}.lock`;
  for (;;) {
    const kept = await readFile(file).catch(() => undefined);
    if (kept !== undefined) return new Blob([kept]);
    if (await takes(lock)) break;
    await sleep(50);
  }
  // A lock that is not touched any more was left by a process that was killed.
  const touching = setInterval(() => utimes(lock, new Date(), new Date()).catch(() => {}), leftAfterMs / 6);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-template-'));
  try {
    await fill({ embeddedPath: folder });
    const { PGlite } = await import('@electric-sql/pglite');
    const pglite = await PGlite.create(path.join(folder, 'postgresql'));
    // The service does not need these databases, and without them a copy takes half the time.
    await pglite.exec("update pg_database set datistemplate = false where datname like 'template%'");
    for (const name of ['template0', 'template1']) await pglite.exec(`drop database ${name}`);
    await pglite.exec('select pg_switch_wal()');
    await pglite.exec('checkpoint');
    const { rows } = await pglite.query<{ file: string; length: number }>(
      'select file_name as file, file_offset as length from pg_walfile_name_offset(pg_current_wal_insert_lsn())',
    );
    const made = await pglite.dumpDataDir('none');
    await pglite.close();
    const dump = withShortLog(Buffer.from(await made.arrayBuffer()), rows[0]?.file ?? '', Number(rows[0]?.length));
    const unfinished = `${file}.${randomUUID()}`;
    await writeFile(unfinished, dump, { mode: 0o600 });
    await rename(unfinished, file);
    await removeOutdated(prefix, file);
    return new Blob([dump]);
  } finally {
    clearInterval(touching);
    await rm(folder, { recursive: true, force: true });
    await rm(lock, { force: true });
  }
}

const blockBytes = 512;
const pageBytes = 8192;

/**
 * A tar of a data folder without the files of the log before the last one, and without what follows the last record in this one. They are two
 * thirds of it, and each copy would take them into memory.
 *
 * @param last the file of the log that has the last checkpoint
 * @param usedBytes how much of it is used
 */
function withShortLog(tar: Buffer, last: string, usedBytes: number): Buffer<ArrayBuffer> {
  const kept: Buffer[] = [];
  for (let at = 0; at + blockBytes <= tar.length; ) {
    const header = tar.subarray(at, at + blockBytes);
    const name = header.toString('latin1', 0, 100).replace(/\0.*$/s, '');
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8) || 0;
    const contents = tar.subarray(at + blockBytes, at + blockBytes + size);
    at += blockBytes * (1 + Math.ceil(size / blockBytes));
    const [, segment] = /pg_wal\/([0-9A-F]{24})$/.exec(name) ?? [];
    if (segment === undefined) kept.push(header, padded(contents));
    else if (segment === last) {
      const used = contents.subarray(0, pageBytes * (1 + Math.ceil(usedBytes / pageBytes)));
      kept.push(withSize(header, used.length), padded(used));
    }
  }
  return Buffer.concat(kept);
}

const padded = (contents: Buffer): Buffer =>
  Buffer.concat([contents, Buffer.alloc((blockBytes - (contents.length % blockBytes)) % blockBytes)]);

/** The header of a file of a tar with another size. */
function withSize(header: Buffer, size: number): Buffer {
  const changed = Buffer.from(header);
  changed.write(`${size.toString(8).padStart(11, '0')} `, 124, 'latin1');
  changed.write(' '.repeat(8), 148, 'latin1'); // as the checksum is computed
  const sum = changed.reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return changed;
}

const leftAfterMs = 60_000;

/** Takes a lock, so that one process makes the dump and the others wait for it. @returns false if another process has it */
async function takes(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // of the file system
    const touched = (await stat(lock).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (touched < Date.now() - leftAfterMs) await rm(lock, { force: true });
    return false;
  }
}

/** Removes the dumps that were made more than a day ago. A later one may be of another checkout. */
async function removeOutdated(prefix: string, current: string): Promise<void> {
  for (const name of await readdir(os.tmpdir())) {
    const file = path.join(os.tmpdir(), name);
    if (!name.startsWith(prefix) || file === current) continue;
    const made = (await stat(file).catch(() => undefined))?.mtimeMs ?? 0;
    if (made < Date.now() - 86_400_000) await rm(file, { force: true });
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
  const name = `template_${await hashOfSchema()}`;
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

async function hashOfSchema(): Promise<string> {
  const db = path.join(import.meta.dirname, '..', '..', 'db');
  const hash = createHash('sha256');
  for (const folder of ['engine', 'schema']) {
    for (const file of (await readdir(path.join(db, folder), { recursive: true })).toSorted()) {
      if (file.endsWith('.ts')) hash.update(`${file}\0`).update(await readFile(path.join(db, folder, file)));
    }
  }
  return hash.digest('hex').slice(0, 16);
}
