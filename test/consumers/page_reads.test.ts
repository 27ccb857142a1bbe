/**
 * The rows that a page of consumers reads depend on its length, not on the number of consumers. For a user or a type at
 * most fifty times the length of the page is counted before.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql, type Transaction } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { type ConsumerQuery, listConsumers } from '../../db/statements/consumers/list_consumers.ts';
import type { Tables } from '../../db/tables.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';

const consumers = 20_000;
const limit = 10;

/** One consumer in ten is of the project 'small'; all have allocations on provider 1, one in five has one on another, too. */
async function fill({ kysely }: Database): Promise<void> {
  await sql`insert into projects (external_id) values ('large'), ('small'), ('incomplete')`.execute(kysely);
  await sql`insert into users (external_id) values ('u'), ('incomplete'), ('rare')`.execute(kysely);
  await sql`insert into consumer_types (name) values ('INSTANCE'), ('RARE')`.execute(kysely);
  await sql`insert into resource_providers (uuid, name, generation)
    select 'p' || n, 'p' || n, 0 from generate_series(1, 5) as n`.execute(kysely);
  await sql`insert into consumers (uuid, project_id, user_id, generation, consumer_type_id, etag)
    select md5(n::text), case when n % 10 = 0 then 2 else 1 end, 1, 1, case when n % 3 = 0 then 1 end, 'made up'
    from generate_series(1, ${consumers}::integer) as n`.execute(kysely);
  await sql`insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
    select case when class = 2 then 2 + n / 5 % 4 else 1 end, md5(n::text), class, 1
    from generate_series(1, ${consumers}::integer) as n, generate_series(0, 2) as class
    where class < 2 or n % 5 = 0`.execute(kysely);
  await sql`update consumers set user_id = 3, consumer_type_id = 2 where uuid > 'ffe'`.execute(kysely);
  await sql`insert into consumer_names (consumer_id, name)
    select id, case when uuid > 'ffe' then 'Rare-' else 'job-' end || id from consumers`.execute(kysely);
  for (const table of ['consumers', 'allocations', 'consumer_names'] as const)
    await sql`vacuum analyze ${sql.table(table)}`.execute(kysely);
}

const everything: ConsumerQuery = {
  projectId: undefined,
  userId: undefined,
  consumerType: undefined,
  name: undefined,
  namePart: undefined,
  expiringBefore: undefined,
  providers: [],
  marker: '4',
  limit,
  incomplete: { projectId: 'incomplete', userId: 'incomplete' },
};

const queries: Readonly<Record<string, Partial<ConsumerQuery>>> = {
  'all consumers': {},
  'those of a project': { projectId: 'small' },
  'those of a project and a user': { projectId: 'small', userId: 'u' },
  'those of a large project and a user that few have': { projectId: 'large', userId: 'rare' },
  'those of a type that few have': { consumerType: 'RARE' },
  'those of a user that few have': { userId: 'rare' },
  'those of a user': { userId: 'u' },
  'those of a type': { consumerType: 'INSTANCE' },
  'those without a type': { consumerType: 'unknown' },
  'those with a text in their name': { namePart: 'JOB-' },
  'those with a text in their name that few have': { namePart: 'rare' },
  'those of a project with a text in their name': { namePart: 'job-', projectId: 'small' },
};

/** Makes 50,000 consumers of 10,000 users in 1,000 projects, of which one has a third. */
async function fillProjects({ kysely }: Database): Promise<void> {
  await sql`insert into projects (external_id) select 'project' || n from generate_series(1, 1000) as n`.execute(
    kysely,
  );
  await sql`insert into users (external_id) select 'user' || n from generate_series(1, 10000) as n`.execute(kysely);
  await sql`insert into consumers (uuid, project_id, user_id, generation, etag)
    select md5(n::text), p.id, u.id, 1, 'made up' from generate_series(1, 50000) as n
    join projects p on p.external_id = 'project' || case when n % 3 = 0 then 1 else 2 + n % 999 end
    join users u on u.external_id = 'user' || (1 + n * 37 % 10000)`.execute(kysely);
  await sql`vacuum analyze consumers`.execute(kysely);
}

/** Entries of indexes and rows of tables that the transaction has read so far. */
const readIn = (transaction: Transaction<Tables>) =>
  onlyRow(
    transaction,
    sql<{ read: number }>`select sum(pg_stat_get_xact_tuples_returned(oid))::integer as read from pg_class
      where oid in (select indexrelid from pg_index where indrelid in ('consumers'::regclass, 'allocations'::regclass))
        or oid in ('consumers'::regclass, 'allocations'::regclass)`,
  );

/** Reads a page. @returns its length, and the entries of indexes and rows of tables that were read for it */
const readPage = (database: Database, query: ConsumerQuery) =>
  database.kysely.transaction().execute(async (transaction) => {
    const before = await readIn(transaction);
    const page = await listConsumers({ ...database, kysely: transaction }, query);
    const after = await readIn(transaction);
    return { found: page.length, read: after.read - before.read };
  });

test('a page is read by an index', async (t) => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    try {
      await fill(database);
      for (const [name, query] of Object.entries(queries)) {
        const { found, read } = await readPage(database, { ...everything, ...query });
        t.diagnostic(`${name}: ${read}`);
        if (!name.endsWith('few have')) assert.equal(found, limit + 1, name);
        assert.ok(read < 700, `${name}: it reads ${read} rows and entries for a page of ${limit}`);
      }
    } finally {
      await database.close();
    }
  });
});

test('the consumers of a user in a project are read by the index of both, also in a large project', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    try {
      await fillProjects(database);
      const query = { ...everything, projectId: 'project1', userId: 'user7', marker: undefined };
      // The server makes a plan for any values after five runs with one for these values.
      for (let run = 0; run < 8; run += 1) {
        const { found, read } = await readPage(database, query);
        assert.equal(found, 2);
        assert.ok(read < 100, `run ${run}: it reads ${read} rows and entries`);
      }
    } finally {
      await database.close();
    }
  });
});
