import pg from 'pg';
import type { Embedded } from '../../db/engine/embedded.ts';
import { embeddedTemplate } from './templates.ts';

/*
 * Embedded databases in memory that the tests of a process use one after the other. To start one takes 0.3 s of CPU time, to give it the
 * contents of a new one again a tenth of that.
 */

/** By table, what changes with every write to it. */
type Versions = ReadonlyMap<string, string>;

type Kept = {
  readonly database: Embedded;
  /** The version of the schema of a new database. */
  readonly schema: string;
  /** The rows of a new database by table, as a JSON array; tables without rows are left out. */
  readonly contents: ReadonlyMap<string, string>;
  /** Statements that give the sequences the values of a new database. */
  readonly sequences: string;
  /** The versions of the tables with the contents of a new database. */
  versions: Versions;
};

/** So many are kept for the next tests. Each takes some 100 MB. */
const mostKept = 2;

/** A table with more rows leaves so much behind that a new database is cheaper. */
const mostRows = 20_000;

const free: Kept[] = [];
let isKeeping = false;

/**
 * From now on databases are kept for the next tests. A process does not end before the kept ones are closed.
 *
 * @returns a function that ends this, and closes them
 */
export function keepEmbedded(): () => Promise<void> {
  isKeeping = true;
  return async () => {
    isKeeping = false;
    for (const { database } of free.splice(0)) await database.close();
  };
}

/** A database with the schema and the standard names. */
export async function borrowEmbedded(): Promise<Embedded> {
  const kept = free.pop() ?? (await start());
  return {
    poolConfig: kept.database.poolConfig,
    close: async () => {
      const isKept = isKeeping && free.length < mostKept && (await renew(kept).catch(() => false));
      if (isKept) free.push(kept);
      else await kept.database.close();
    },
  };
}

async function start(): Promise<Kept> {
  const { openEmbedded } = await import('../../db/engine/embedded.ts'); // a test on PostgreSQL does without PGlite
  const database = await openEmbedded({ embeddedPath: 'memory://', template: await embeddedTemplate() });
  return withClient(database, async (client) => {
    const versions = await readVersions(client);
    const contents = new Map<string, string>();
    for (const [table, version] of versions) {
      if (version === noRows) continue;
      const { rows } = await client.query<{ rows: string }>(`select json_agg(t)::text as rows from ${table} t`);
      contents.set(table, rows[0]?.rows ?? '[]');
    }
    const { rows: sequences } = await client.query<{ statement: string }>(settingSequences);
    const statements = sequences.map(({ statement }) => statement).join('');
    return { database, schema: await readSchema(client), contents, sequences: statements, versions };
  });
}

/** Gives a database the contents of a new one. @returns false where its schema was changed, or too much was written */
async function renew(kept: Kept): Promise<boolean> {
  return withClient(kept.database, async (client) => {
    await client.query('rollback'); // a test may have left a transaction open
    await client.query('discard all');
    if ((await readSchema(client)) !== kept.schema) return false;
    const versions = await readVersions(client);
    const changed = [...versions].filter(([table, version]) => version !== kept.versions.get(table));
    if (changed.some(([, version]) => Number.parseInt(version, 10) > mostRows)) return false;
    await client.query('set session_replication_role = replica'); // without the triggers
    await client.query(changed.map(([table]) => `delete from ${table};`).join(''));
    for (const [table] of changed) {
      const rows = kept.contents.get(table);
      const insert = `insert into ${table} select * from json_populate_recordset(null::${table}, $1)`;
      if (rows !== undefined) await client.query(insert, [rows]);
    }
    await client.query(kept.sequences);
    await client.query('discard all');
    kept.versions = changed.length === 0 ? versions : await readVersions(client);
    return true;
  });
}

async function withClient<T>({ poolConfig }: Embedded, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const pool = new pg.Pool(poolConfig());
  const client = await pool.connect();
  try {
    return await use(client);
  } finally {
    client.release();
    await pool.end();
  }
}

const noRows = '0 ';

/** The number of rows of each table, and the last transaction that wrote one of them. */
async function readVersions(client: pg.PoolClient): Promise<Versions> {
  const { rows: tables } = await client.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const versions = tables.map(({ name }) => `select '${name}' as name, ${versionOfRows} as version from ${name}`);
  const { rows } = await client.query<{ name: string; version: string }>(versions.join(' union all '));
  return new Map(rows.map(({ name, version }) => [name, version]));
}

const versionOfRows = `count(*) || ' ' || coalesce(max(xmin::text::bigint)::text, '')`;

/** The number of rows of the catalogs, and the last transaction that wrote one of them. */
async function readSchema(client: pg.PoolClient): Promise<string> {
  const catalogs = ['class', 'attribute', 'proc', 'trigger', 'index', 'constraint', 'namespace', 'db_role_setting'];
  const versions = catalogs.map((name) => `select ${versionOfRows} as version from pg_${name}`);
  const { rows } = await client.query<{ version: string }>(versions.join(' union all '));
  return rows.map(({ version }) => version).join();
}

const settingSequences = `
  select format('select setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value),
    last_value is not null) as statement
  from pg_sequences`;
