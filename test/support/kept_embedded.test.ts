import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import type { Embedded } from '../../db/engine/embedded.ts';
import { freshDatabase } from './engines.ts';
import { borrowEmbedded } from './kept_embedded.ts';
import { requestsTo } from './requests.ts';
import { openServiceOn } from './services.ts';

type Query = (statement: string) => Promise<readonly Record<string, unknown>[]>;

/** Calls back with a client of a borrowed database, which is given back at the end. */
async function withBorrowed<T>(use: (query: Query, embedded: Embedded) => Promise<T>): Promise<T> {
  const embedded = await borrowEmbedded();
  const pool = new pg.Pool(embedded.poolConfig());
  try {
    return await use(async (statement) => (await pool.query(statement)).rows, embedded);
  } finally {
    await pool.end();
    await embedded.close();
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

/** The number of the transaction, which tells one running database from another. */
const transactions = (query: Query): ReturnType<Query> => query('select pg_current_xact_id()::text::integer as last');

test('a database that a test has used before has the contents of a new one', async () => {
  const [before, last] = await withBorrowed(async (query) => [await everything(query), await transactions(query)]);
  assert.ok([...before.values()].some((rows) => String(rows).includes('HW_CPU_X86_AVX2')));
  const database = await freshDatabase('embedded');
  const service = await openServiceOn(database);
  const send = requestsTo(service);
  const provider = '10000000-0000-4000-8000-000000000001';
  const writes = [
    ['PUT', '/traits/CUSTOM_KEPT'],
    ['PUT', '/resource_classes/CUSTOM_KEPT'],
    ['POST', '/resource_providers', { uuid: provider, name: 'host' }],
    [
      'PUT',
      `/resource_providers/${provider}/inventories`,
      { resource_provider_generation: 0, inventories: { VCPU: { total: 8 } } },
    ],
    [
      'PUT',
      '/allocations/20000000-0000-4000-8000-000000000001',
      {
        allocations: { [provider]: { resources: { VCPU: 1 } } },
        project_id: 'p',
        user_id: 'u',
        consumer_generation: null,
        consumer_type: 'INSTANCE',
      },
    ],
  ] as const;
  try {
    for (const [method, path, body] of writes) {
      const { status, text } = await send(method, path, body);
      assert.ok(status < 300, text);
    }
  } finally {
    await service.close();
  }
  await withBorrowed(async (query) => {
    await query(`update resource_classes set updated_at = now() where name = 'VCPU'`);
    await query(`delete from traits where name = 'HW_CPU_X86_AVX2'`);
    await query('delete from provider_changes');
    await query(`set work_mem = '5MB'`);
    await query('begin');
  });
  await withBorrowed(async (query) => {
    assert.deepEqual(await everything(query), before);
    const [[first], [now]] = [last, await transactions(query)];
    assert.ok(Number(now?.last) > Number(first?.last), 'this is a new database');
  });
});

test('a database whose schema a test has changed is not used again', async () => {
  for (const change of [
    'create table left_behind (id integer)',
    'alter table traits disable trigger all',
    'alter table traits drop column updated_at',
    'create or replace function lost_race() returns boolean language sql as $$ select true $$',
    'drop index provider_changes_xid_idx',
    `alter database postgres set work_mem = '5MB'`,
  ]) {
    const before = await withBorrowed(async (query) => {
      await query(change);
      return transactions(query);
    });
    const [now] = await withBorrowed(transactions);
    assert.ok(Number(now?.last) < Number(before[0]?.last), change);
  }
});
