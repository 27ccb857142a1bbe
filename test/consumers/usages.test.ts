/** The usage of a project is summed up in the database; here it is computed once more from its rows, plainly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { readUsages, type UsageRow } from '../../db/statements/claims/read_usages.ts';
import { engines, runsOn, withFreshDatabase } from '../support/engines.ts';
import { reportReads } from '../support/postgresql.ts';

const projects = ['p1', 'p2', 'incomplete'];
const users = ['u1', 'u2', 'incomplete'];
/** A consumer type may have the name that answers use for no type. */
const types = ['INSTANCE', 'unknown'];
const classes = ['VCPU', 'MEMORY_MB', 'DISK_GB'];
const incomplete = { projectId: 'incomplete', userId: 'incomplete' };

const anyConsumer = fc.record({
  /** Undefined for old allocations without a record. */
  owner: fc.option(fc.record({ project: fc.nat(2), user: fc.nat(2), type: fc.option(fc.nat(1), { nil: undefined }) }), {
    nil: undefined,
  }),
  /** The index of the class, and the amount: a consumer may have one class of several providers. */
  allocations: fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 5 })), { maxLength: 4 }),
});
type Consumer = typeof anyConsumer extends fc.Arbitrary<infer Value> ? Value : never;

async function write({ kysely }: Database, consumers: readonly Consumer[]): Promise<void> {
  await sql`delete from allocations`.execute(kysely);
  await sql`delete from consumers`.execute(kysely);
  for (const [number, { owner, allocations }] of consumers.entries()) {
    const uuid = `consumer ${number}`;
    if (owner !== undefined)
      await sql`insert into consumers (uuid, project_id, user_id, consumer_type_id, generation, etag)
        values (${uuid}, ${owner.project + 1}, ${owner.user + 1}, ${owner.type === undefined ? null : owner.type + 1}, 1, 'made up')`.execute(
        kysely,
      );
    for (const [provider, [resourceClass, used]] of allocations.entries())
      await sql`insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
        values (${provider + 1}, ${uuid}, (select id from resource_classes where name = ${classes[resourceClass]}), ${used})`.execute(
        kysely,
      );
  }
}

type Query = {
  readonly projectId: string;
  readonly userId: string | undefined;
  readonly consumerType: string | undefined;
};

function usagesOf(consumers: readonly Consumer[], { projectId, userId, consumerType }: Query): readonly UsageRow[] {
  const found = new Map<string, { consumers: number; used: Map<string, number> }>();
  for (const { owner, allocations } of consumers) {
    const project = projects[owner?.project ?? 2];
    const user = users[owner?.user ?? 2];
    const own = owner?.type === undefined ? 'unknown' : (types[owner.type] ?? '');
    if (project !== projectId || (userId !== undefined && user !== userId) || allocations.length === 0) continue;
    if (consumerType !== undefined && consumerType !== 'all' && own !== consumerType) continue;
    const type = consumerType === 'all' ? 'all' : own;
    const group = found.get(type) ?? { consumers: 0, used: new Map() };
    found.set(type, group);
    group.consumers += 1;
    for (const [index, used] of allocations) {
      const name = classes[index] ?? '';
      group.used.set(name, (group.used.get(name) ?? 0) + used);
    }
  }
  return [...found].flatMap(([consumer_type, group]) =>
    [...group.used].map(([class_name, used]) => ({ class_name, used, consumer_type, consumer_count: group.consumers })),
  );
}

const sorted = (rows: readonly UsageRow[]): readonly string[] =>
  rows
    .map(({ class_name, used, consumer_type, consumer_count }) =>
      [consumer_type, class_name, used, consumer_count].join(' '),
    )
    .sort();

test('the allocations of a project with very many consumers are read in one pass, in memory', async () => {
  const count = 30_000;
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    const { kysely } = database;
    try {
      await sql`set session_replication_role = replica`.execute(kysely); // without triggers, which are slow for so many rows
      await sql`insert into projects (id, external_id) select n, 'p' || n from generate_series(1, 500) as n`.execute(
        kysely,
      );
      await sql`insert into users (id, external_id) values (1, 'u')`.execute(kysely);
      // The others have few consumers: what is right for the average project is wrong for this one.
      await sql`insert into consumers (uuid, project_id, user_id)
        select 'consumer ' || n, greatest(n - ${count}::integer, 1), 1
        from generate_series(1, ${count}::integer + 500) as n`.execute(kysely);
      await sql`insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
        select 1, 'consumer ' || n, id, 2 from generate_series(1, ${count}::integer) as n, resource_classes
        where name in ('VCPU', 'MEMORY_MB') order by hashint4(n)`.execute(kysely);
      await sql`analyze`.execute(kysely);
      const before = await workOf(database);
      const query = { projectId: 'p1', userId: undefined, consumerType: undefined, incomplete };
      assert.deepEqual(sorted(await readUsages(database, query)), [
        `unknown MEMORY_MB ${2 * count} ${count}`,
        `unknown VCPU ${2 * count} ${count}`,
      ]);
      const after = await workOf(database);
      const lookups = after.lookups - before.lookups;
      assert.ok(lookups < count / 2, `${lookups} look-ups`);
      assert.equal(after.temp_files, before.temp_files);
    } finally {
      await database.close();
    }
  });
});

async function workOf({ kysely }: Database): Promise<{ readonly lookups: number; readonly temp_files: number }> {
  await reportReads(kysely);
  const query = sql<{ lookups: number; temp_files: number }>`
    select idx_scan::integer as lookups, (select sum(temp_files)::integer from pg_stat_database where datname = current_database()) as temp_files
    from pg_stat_user_tables where relname = 'allocations'`;
  return onlyRow(kysely, query);
}

for (const engine of engines) {
  test(`the usage of a project is that of its rows: ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase({ ...settings, maxPoolSize: 1 });
      const { kysely } = database;
      try {
        for (const [table, column, values] of [
          ['projects', 'external_id', projects],
          ['users', 'external_id', users],
          ['consumer_types', 'name', types],
        ] as const)
          for (const [index, value] of values.entries())
            await sql`insert into ${sql.table(table)} (id, ${sql.ref(column)}) values (${index + 1}, ${value})`.execute(
              kysely,
            );
        await sql`insert into resource_providers (id, uuid, name, generation)
          select n, 'p' || n, 'p' || n, 0 from generate_series(1, 4) as n`.execute(kysely);
        const anyQuery = fc.record({
          projectId: fc.constantFrom(...projects),
          userId: fc.constantFrom(undefined, ...users),
          consumerType: fc.constantFrom(undefined, 'all', ...types),
        });
        await fc.assert(
          fc.asyncProperty(
            fc.array(anyConsumer, { minLength: 1, maxLength: 12 }),
            fc.array(anyQuery, { minLength: 1, maxLength: 8 }),
            fc.integer({ min: 0, max: 4 }),
            async (consumers, queries, few) => {
              await write(database, consumers);
              for (const query of queries) {
                const expected = sorted(usagesOf(consumers, query));
                for (const lookedUp of [undefined, 0, few]) {
                  const rows = await readUsages(database, { ...query, incomplete }, lookedUp);
                  assert.deepEqual(sorted(rows), expected, JSON.stringify({ ...query, lookedUp }));
                }
              }
            },
          ),
          { numRuns: runsOn(engine, 30) },
        );
      } finally {
        await database.close();
      }
    });
  });
}
