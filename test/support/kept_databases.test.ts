import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { type Engine, engines, freshDatabase } from './engines.ts';
import { accepted, makeProvider, newClaim, requestsTo } from './requests.ts';
import { withTestService } from './services.ts';

type Query = (statement: string) => Promise<readonly Record<string, unknown>[]>;

/** Calls back with a client of a borrowed database, which is returned at the end. */
async function withBorrowed<T>(engine: Engine, use: (query: Query) => Promise<T>): Promise<T> {
  const { config, embedded, drop } = await freshDatabase(engine);
  const opened = await embedded?.inMemory?.();
  const pool = new pg.Pool(opened?.poolConfig() ?? { connectionString: config.connection ?? '', max: 1 });
  pool.on('error', () => {}); // the connection of a test that left it open is ended
  try {
    return await use(async (statement) => (await pool.query(statement)).rows);
  } finally {
    if (opened !== undefined) await pool.end();
    await opened?.close();
    await drop();
    if (opened === undefined) await pool.end();
  }
}

/** Every row of every table, the values of the sequences, and the settings of the session. */
async function everything(query: Query): Promise<ReadonlyMap<string, unknown>> {
  const tables = await query(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const contents = new Map<string, unknown>();
  for (const { name } of tables) {
    const [rows] = await query(`select json_agg(t order by t::text)::text as rows from ${name} t`);
    contents.set(String(name), rows?.rows);
  }
  contents.set('sequences', await query('select sequencename, last_value from pg_sequences order by 1'));
  contents.set('settings', await query(`select name, setting from pg_settings where source = 'session' order by 1`));
  return contents;
}

/** What tells one database from another: the name of one of a server, and of an embedded one the number of the transaction. */
type Name = { readonly name: string; readonly last: number };

const nameOf = async (query: Query): Promise<Name> => {
  const [row] = await query('select current_database()::text as name, pg_current_xact_id()::text::integer as last');
  return { name: String(row?.name), last: Number(row?.last) };
};

const isSame = (engine: Engine, now: Name, before: Name): boolean =>
  engine === 'embedded' ? now.last > before.last : now.name === before.name;

/** Changes a database in several ways, and compares it with a new one. @returns whether it is the same database to the end */
async function isUsedAgain(engine: Engine): Promise<boolean> {
  const [before, first] = await withBorrowed(engine, async (query) => [await everything(query), await nameOf(query)]);
  assert.ok([...before.values()].some((rows) => String(rows).includes('HW_CPU_X86_AVX2')));
  await withTestService(engine, {}, async (service) => {
    const send = requestsTo(service);
    const provider = '10000000-0000-4000-8000-000000000001';
    accepted(await send('PUT', '/traits/CUSTOM_KEPT'));
    accepted(await send('PUT', '/resource_classes/CUSTOM_KEPT'));
    await makeProvider(send, provider, { VCPU: { total: 8 } });
    const claim = newClaim({ [provider]: { VCPU: 1 } });
    accepted(await send('PUT', '/allocations/20000000-0000-4000-8000-000000000001', claim));
  });
  await withBorrowed(engine, async (query) => {
    await query(`update resource_classes set updated_at = now() where name = 'VCPU'`);
    await query(`delete from traits where name = 'HW_CPU_X86_AVX2'`);
    await query('delete from provider_changes');
    await query(`set work_mem = '5MB'`);
    await query('begin');
    await query('lock table resource_providers');
  });
  return withBorrowed(engine, async (query) => {
    assert.deepEqual(await everything(query), before);
    return isSame(engine, await nameOf(query), first);
  });
}

for (const engine of engines) {
  test(`a database that a test has used before has the contents of a new one, on ${engine}`, async () => {
    let isAgain = false;
    // If the server vacuums the database meanwhile, it is not used again.
    for (let attempt = 0; attempt < 5 && !isAgain; attempt += 1) isAgain = await isUsedAgain(engine);
    assert.ok(isAgain);
  });

  test(`a database whose schema or statistics a test has changed is not used again, on ${engine}`, async () => {
    let former: { readonly change: string; readonly name: Name } | undefined;
    const isNew = async (query: Query) => {
      const name = await nameOf(query);
      if (former !== undefined) assert.ok(!isSame(engine, name, former.name), `still there after ${former.change}`);
    };
    for (const change of [
      'create table left_behind (id integer)',
      'alter table traits disable trigger all',
      'alter table traits drop column updated_at',
      'create or replace function lost_race() returns boolean language sql as $$ select true $$',
      'drop index provider_changes_xid_idx',
      'do $$ begin execute format($f$ alter database %I set work_mem = 5000 $f$, current_database()); end $$',
      'analyze traits',
      'vacuum resource_providers',
    ]) {
      await withBorrowed(engine, async (query) => {
        await isNew(query);
        await query(change);
        former = { change, name: await nameOf(query) };
      });
    }
    await withBorrowed(engine, isNew);
  });
}
