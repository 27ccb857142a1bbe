import type pg from 'pg';

/*
 * Databases that the tests of a process use one after the other. To give a database the contents of a new one again takes a fraction of the
 * time of making one, above all where a database is a thousand files on a disk.
 */

/** How databases of a kind are made and reached. All that are made have the same contents. */
export type DatabaseKind<T> = {
  readonly make: () => Promise<T>;
  readonly withClient: <R>(database: T, use: (client: pg.ClientBase) => Promise<R>) => Promise<R>;
  readonly remove: (database: T) => Promise<void>;
};

/** Databases of a kind. */
export type KeptDatabases<T> = {
  /** A database with the contents of a new one. */
  borrow(): Promise<T>;
  /** Keeps a database for the next test, or removes it. */
  giveBack(database: T): Promise<void>;
};

/** By table, what changes with every write to it. */
type Versions = ReadonlyMap<string, string>;

/** What a new database has. */
type Contents = {
  /** The version of the schema. */
  readonly schema: string;
  /** The rows by table, as a JSON array; tables without rows are left out. */
  readonly rows: ReadonlyMap<string, string>;
  /** Statements that give the sequences their values. */
  readonly sequences: string;
};

/** How many of a kind are kept for the next tests. An embedded one takes some 100 MB. */
const mostKept = 2;

/** A table with more rows leaves so much behind that a new database is cheaper. */
const mostRows = 20_000;

let isKeeping = false;
const removals: (() => Promise<void>)[] = [];

/**
 * From now on databases are kept for the next tests. A process does not end before the kept embedded ones are closed.
 *
 * @returns a function that stops this, and removes the kept databases
 */
export function keepDatabases(): () => Promise<void> {
  isKeeping = true;
  return async () => {
    isKeeping = false;
    for (const remove of removals) await remove();
  };
}

/** Databases of one kind: returned ones are borrowed again. */
export function keptDatabases<T>({ make, withClient, remove }: DatabaseKind<T>): KeptDatabases<T> {
  const free: T[] = [];
  let contents: Contents | undefined;
  /** Of each database, the versions of its tables with the contents of a new one. */
  const versionsOf = new Map<T, Versions>();
  const forget = (database: T): Promise<void> => {
    versionsOf.delete(database);
    return remove(database);
  };
  removals.push(async () => {
    for (const database of free.splice(0)) await forget(database);
  });
  return {
    borrow: async () => {
      const kept = free.pop();
      if (kept !== undefined) return kept;
      const database = await make();
      if (!isKeeping) return database;
      await withClient(database, async (client) => {
        const versions = await readVersions(client);
        contents ??= await readContents(client, versions);
        versionsOf.set(database, versions);
      });
      return database;
    },
    giveBack: async (database) => {
      const versions = versionsOf.get(database);
      const renewed =
        isKeeping && free.length < mostKept && contents !== undefined && versions !== undefined
          ? await withClient(database, renewal(contents, versions)).catch(() => undefined)
          : undefined;
      if (renewed === undefined) return forget(database);
      versionsOf.set(database, renewed);
      free.push(database);
    },
  };
}

async function readContents(client: pg.ClientBase, versions: Versions): Promise<Contents> {
  const rows = new Map<string, string>();
  for (const [table, version] of versions) {
    if (version === noRows) continue;
    const { rows: all } = await client.query<{ rows: string }>(`select json_agg(t)::text as rows from ${table} t`);
    rows.set(table, all[0]?.rows ?? '[]');
  }
  const { rows: sequences } = await client.query<{ statement: string }>(settingSequences);
  const statements = sequences.map(({ statement }) => statement).join('');
  return { schema: await readSchema(client), rows, sequences: statements };
}

/**
 * Resets a database to the contents of a new one.
 *
 * @returns the versions of its tables; undefined where its schema or its statistics were changed, or too much was written
 */
const renewal =
  (contents: Contents, before: Versions) =>
  async (client: pg.ClientBase): Promise<Versions | undefined> => {
    await client.query('rollback'); // a test may have left a transaction open
    await client.query('discard all');
    await client.query(endingOthers);
    await client.query(`set lock_timeout = '1s'`); // a prepared transaction keeps its locks
    if ((await readSchema(client)) !== contents.schema) return undefined;
    const versions = await readVersions(client);
    const changed = [...versions].filter(([table, version]) => version !== before.get(table));
    if (changed.some(([, version]) => Number.parseInt(version, 10) > mostRows)) return undefined;
    await client.query('set session_replication_role = replica'); // without the triggers
    await client.query(changed.map(([table]) => `delete from ${table};`).join(''));
    for (const [table] of changed) {
      const rows = contents.rows.get(table);
      const insert = `insert into ${table} select * from json_populate_recordset(null::${table}, $1)`;
      if (rows !== undefined) await client.query(insert, [rows]);
    }
    await client.query(contents.sequences);
    await client.query('discard all');
    return changed.length === 0 ? versions : readVersions(client);
  };

/** Ends what is left of services of the test, and waits for it. */
const endingOthers = `select pg_terminate_backend(pid, 1000) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

const noRows = '0 ';

/** The number of rows of each table, and the last transaction that wrote one of them. */
async function readVersions(client: pg.ClientBase): Promise<Versions> {
  const { rows: tables } = await client.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const versions = tables.map(({ name }) => `select '${name}' as name, ${versionOfRows} as version from ${name}`);
  const { rows } = await client.query<{ name: string; version: string }>(versions.join(' union all '));
  return new Map(rows.map(({ name, version }) => [name, version]));
}

const versionOfRows = `count(*) || ' ' || coalesce(max(xmin::text::bigint)::text, '')`;

/** What a schema is in, and the statistics, by which the next test could get other plans. */
const catalogs = [
  'class',
  'attribute',
  'proc',
  'trigger',
  'index',
  'constraint',
  'namespace',
  'extension',
  'publication',
  'statistic',
];

/**
 * The number of rows of the catalogs, and the last transaction that wrote one of them. A vacuum, also one of the server's own, writes how large
 * a table is without a transaction: the planner would take a table that it found empty for small ever after.
 */
const schemaParts = [
  ...catalogs.map((name) => `select ${versionOfRows} as version from pg_${name}`),
  `select sum(relpages)::text || ' ' || sum(reltuples)::text from pg_class where relnamespace = 'public'::regnamespace`,
  `select coalesce(string_agg(setconfig::text, ''), '') from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())`,
];

async function readSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ version: string }>(schemaParts.join(' union all '));
  return rows.map(({ version }) => version).join();
}

const settingSequences = `
  select format('select setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value),
    last_value is not null) as statement
  from pg_sequences`;
