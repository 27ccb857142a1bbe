/**
 * Two programs write at once: whatever the order of their statements, all that triggers keep is right in the end. The service is one of
 * them in some pairs, by the statements that it sends.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import { backfillEtags } from '../../db/online/backfill_etags.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import type { ProjectUsage } from '../../db/statements/claims/project_usages.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { updateConsumer } from '../../db/statements/consumers/consumer_write.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { setTerm } from '../../db/statements/consumers/set_term.ts';
import { type NewLimits, writeLimits } from '../../db/statements/limits.ts';
import { assignOwners } from '../../db/statements/usage_history.ts';
import { differences } from '../history/world.ts';
import { interleave, type Programs, type Statement, withPrograms } from '../races/interleavings.ts';
import { withFreshDatabase } from '../support/engines.ts';

/*
 * At first: provider 3 is a child of provider 1; all consumers but the fourth have something of provider 1; the third has no record, and
 * the fifth is not there yet. The term of the first has ended. The history is on, and usages are counted.
 */
const scene = `
  insert into projects (id, external_id) values (1, 'p1'), (2, 'p2');
  insert into users (id, external_id) values (1, 'u1');
  insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id)
    values (1, 'r1', 'r1', 5, 1, null), (2, 'r2', 'r2', 5, 2, null), (3, 'r3', 'r3', 5, 1, 1);
  insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    values (1, 0, 100, 0, 1, 100, 1, 1), (2, 0, 100, 0, 1, 100, 1, 1);
  insert into consumers (id, uuid, project_id, user_id, generation) values (2, 'c2', 1, 1, 1), (1, 'c1', 1, 1, 1), (4, 'c4', 1, 1, 1);
  insert into consumer_names values (1, 'one');
  insert into consumer_terms values (1, 1, now() - interval '1 minute');
  insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    values (1, 0, 'c1', 1), (1, 1, 'c1', 2), (1, 0, 'c2', 4), (1, 0, 'c3', 8);
  insert into usage_history values (now(), true);
  select settle_usage_records('{c1,c2,c3}');
  insert into resource_classes (id, name) values (10000, 'CUSTOM_OLD');
  insert into limits (project, generation, resources, consumers, is_imported, updated_at)
    values ('p1', 1, '{"VCPU": 99}', '{}', false, now()), ('p2', 1, '{"CUSTOM_OLD": 9}', '{}', false, now());
  insert into usage_counting values (now(), true);
  insert into project_usages values (1, null, '{0,1,null}', '{5,2,2}'), (null, null, '{0,null}', '{8,1}');
  delete from doubtful_usages;
  delete from provider_changes;`;

/** The tables that are as in the scene again before each run. */
const tables = (
  'allocations consumers consumer_names consumer_terms former_consumers projects users inventories resource_provider_etags ' +
  'resource_providers open_usage_records usage_records project_usages doubtful_usages provider_changes inventory_changes ' +
  'resource_classes limits deleted_limits'
).split(' ');

const saving = `${tables.map((table) => `create temporary table saved_${table} as table ${table};`).join('')}
  create function pg_temp.restore() returns void language plpgsql as $x$ begin
    set local session_replication_role = replica;
    ${tables.map((table) => `delete from ${table}; insert into ${table} select * from saved_${table};`).join('\n')}
  end $x$`;

const inserted = (consumer: string, provider = 2): string =>
  `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (${provider}, 0, '${consumer}', 3)`;
const deleted = (consumer: string): string => `delete from allocations where consumer_id = '${consumer}'`;
const recorded = (consumer: string): string =>
  `insert into consumers (uuid, project_id, user_id, generation) values ('${consumer}', 1, 1, 0)`;
const raised = (consumerId: number): string =>
  `update consumers set generation = generation + 1 where id = ${consumerId}`;

type Transactions = Readonly<Record<string, readonly Statement[]>>;

/** What programs write, by what each is about: each one meets itself and all others of its group. */
const written: Readonly<Record<string, Transactions>> = {
  'a consumer': {
    insertion: [inserted('c1')],
    deletion: [deleted('c1')],
    'deletion of the record': [`delete from consumers where uuid = 'c1'`],
    'other project': [`update consumers set project_id = 2 where uuid = 'c1'`],
    'other name': [`update consumer_names set name = 'uno' where consumer_id = 1`],
    'other name of the project': [`update projects set external_id = 'p1 new' where id = 1`],
  },
  'a consumer without a record': {
    insertion: [inserted('c3')],
    deletion: [deleted('c3')],
    'the record': [recorded('c3')],
    'first insertion': [inserted('c5')],
    'record of a new one': [recorded('c5')],
    'UUID of another one': [`update consumers set uuid = 'c3' where uuid = 'c4'`],
  },
  providers: {
    'other UUID': [`update resource_providers set uuid = 'r1 new' where id = 1`],
    'other UUID of another one': [`update resource_providers set uuid = 'r2 new' where id = 2`],
    'other name of the child': [`update resource_providers set name = 'r3 new' where id = 3`],
    'other parent of the child': [
      `update resource_providers set parent_provider_id = 2, root_provider_id = 2 where id = 3`,
    ],
  },
};

/** As OpenStack Placement writes: each of them meets what the service writes. */
const upstream: Transactions = {
  'OpenStack rewrites': [deleted('c1'), inserted('c1', 1), raised(1)],
  'OpenStack releases': [deleted('c1'), `delete from consumers where uuid = 'c1'`],
  'OpenStack names another owner': [`update consumers set project_id = 2 where id = 1`, raised(1)],
};

const claim = (uuid: string, generation: number | null, usages: readonly ProjectUsage[]): ClaimWrite => ({
  providers: [{ providerId: 2, generation: 5, bump: 1 }],
  consumers: [
    {
      uuid,
      generation,
      hasOldAllocations: false,
      projectExternalId: 'p1',
      userExternalId: 'u1',
      consumerType: null,
      etag: null,
      allocations: [{ providerId: 2, classId: 0, used: 2 }],
    },
  ],
  inventories: [],
  counted: { usages, limits: [] },
});
const usage = (classId: number | null, amount: number): ProjectUsage => ({
  project: 'p1',
  consumerType: null,
  classId,
  amount,
});

/** The statements that the service sends in its first transaction, or in the first one with a statement that matches. */
async function sentBy(
  database: Database,
  write: (recording: Database) => Promise<unknown>,
  matching = /./,
): Promise<readonly Statement[]> {
  const sent: Statement[] = [];
  const enough = new Error('The transaction is recorded.');
  const record: Database['transaction'] = async (statements, wait) => {
    const compiled = statements.map((statement) => statement.compile(database.kysely));
    if (!compiled.some(({ sql }) => matching.test(sql))) return database.transaction(statements, wait);
    if (sent.length === 0)
      sent.push(...compiled.map(({ sql, parameters }) => ({ text: sql, values: [...parameters] })));
    throw enough;
  };
  await assert.rejects(write({ ...database, transaction: record, write: record }), enough);
  return sent;
}

const limitsOf = (project: string, known: number | null): NewLimits => ({
  project,
  resources: { CUSTOM_OLD: 5 },
  consumers: {},
  known,
});

/** What stores limits of a class, each of which meets another name of the class. */
const limiting = async (database: Database): Promise<Transactions> => ({
  'first limits': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p3', null))),
  'a limit of one more class': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p1', 1))),
  'another limit of the class': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p2', 1))),
});
const otherClassName = [`update resource_classes set name = 'CUSTOM_NEW' where id = 10000`];

const byService = async (database: Database): Promise<Transactions> => ({
  'a claim': await sentBy(database, (recording) =>
    writeClaims(recording, [claim('c1', 1, [usage(0, 1), usage(1, -2)])]),
  ),
  'a new claim': await sentBy(database, (recording) =>
    writeClaims(recording, [claim('c5', null, [usage(0, 2), usage(null, 1)])]),
  ),
  'a release': await sentBy(database, (recording) => deleteAllocations(recording, ['c1'], undefined, () => {}, true)),
  'another owner': await sentBy(database, async (recording) => {
    const usages = [usage(0, -1), usage(1, -2), usage(null, -1)];
    const moved = [...usages, ...usages.map((each) => ({ ...each, project: 'p2', amount: -each.amount }))];
    await updateConsumer(
      recording,
      { uuid: 'c1', id: 1, generation: 1, allocations: undefined },
      { projectId: 'p2', userId: 'u1', consumerType: null, name: 'eins' },
      {
        judgedOn: await readFleetSnapshot(database.kysely),
        counted: { usages: moved, limits: [] },
        uncountedTypes: [],
      },
    );
  }),
  'another term': await sentBy(database, (recording) =>
    setTerm(recording, { uuid: 'c1', id: 1, generation: 1, allocations: undefined }, 60),
  ),
  'the end of a term': await sentBy(database, (recording) => removeEnded(recording, firstPosition, 10, true)),
});

/** Rows of text: what is wrong. A tag may be missing; answers then have one that is computed. */
const wrong = `
  select 'tag of consumer ' || uuid as what from consumers c where etag is not null and etag is distinct from etag_of_allocations(c)
  union all
  select 'tag of provider ' || id from resource_providers p left join resource_provider_etags e on e.resource_provider_id = p.id
    where (e.provider, e.inventories) is distinct from (etag_of_provider(p)::varchar, etag_of_inventories(p.id)::varchar)
  union all
  select 'tags of no provider ' || resource_provider_id from resource_provider_etags where resource_provider_id not in (select id from resource_providers)
  union all
  select 'term or name of no consumer ' || consumer_id
    from (select consumer_id from consumer_terms union select consumer_id from consumer_names) as n
    where consumer_id not in (select id from consumers)
  union all
  select 'usage of ' || coalesce(project_id::text, 'none') || ' off by ' || sum(amount) from (
    select c.project_id, c.consumer_type_id, resource_class_id as class_id, -used as amount
      from allocations a left join consumers c on c.uuid = a.consumer_id
    union all
    select c.project_id, c.consumer_type_id, null, -count(distinct a.consumer_id)
      from allocations a left join consumers c on c.uuid = a.consumer_id group by 1, 2
    union all
    select project_id, consumer_type_id, class_id, amount
      from project_usages cross join lateral unnest(class_ids, amounts) as each (class_id, amount)
  ) as usages where not exists (select from doubtful_usages d where d.project_id is null or d.project_id = usages.project_id)
    group by project_id, consumer_type_id, class_id having sum(amount) <> 0
  union all
  select 'log of usages of provider ' || provider_id from (
    select resource_provider_id as provider_id, resource_class_id as class_id, used as amount from allocations
    union all
    select resource_provider_id, resource_class_id, -used from saved_allocations
    union all
    select provider_id, class_id, -amount from provider_changes cross join lateral unnest(class_ids, used_deltas) as each (class_id, amount)
  ) as moved group by provider_id, class_id having sum(amount) <> 0
  union all
  select 'limit of project ' || project || ' of no class ' || name from limits cross join lateral jsonb_object_keys(resources) as name
    where name not in (select name from resource_classes)
  union all
  select 'log of provider ' || id from (
    select id, uuid, name, parent_provider_id from resource_providers
    except select id, uuid, name, parent_provider_id from saved_resource_providers
  ) as changed where not exists (select from provider_changes l where l.provider_id = changed.id and whole and coalesce(parts, 1) & 1 = 1)
  union all
  select 'log of consumer ' || uuid from (
    select uuid, held from (
      select consumer_id as uuid, (project_id, user_id, resource_provider_id, resource_class_id, sum(used))::text as held
        from allocations left join consumers on uuid = consumer_id group by consumer_id, project_id, user_id, resource_provider_id, resource_class_id
      union all
      select consumer_id, (project_id, user_id, resource_provider_id, resource_class_id, sum(used))::text
        from saved_allocations left join saved_consumers on uuid = consumer_id
        group by consumer_id, project_id, user_id, resource_provider_id, resource_class_id
    ) as both_states group by 1, 2 having count(*) = 1
  ) as changed where not exists (select from provider_changes where changed.uuid = any(consumer_ids))`;

type Stage = Programs & { readonly database: Database; readonly service: Transactions };

async function withStage(use: (stage: Stage) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Two programs need a PostgreSQL server.');
    const database = await openDatabase(settings);
    try {
      await withPrograms(settings.connection, async (programs) => {
        await programs.observer.query(scene);
        await programs.observer.query(saving);
        await use({ ...programs, database, service: await byService(database) });
      });
    } finally {
      await database.close();
    }
  });
}

/** Lets two transactions meet in all orders. @returns what was wrong, with the orders */
async function meet(
  { programs, observer, database }: Stage,
  one: readonly Statement[],
  other: readonly Statement[],
): Promise<readonly string[]> {
  const found: string[] = [];
  const restore = () => observer.query('select pg_temp.restore()');
  await interleave({ programs, observer }, [one, other], restore, async ({ order, errors }) => {
    // What a background task does: neither of two transactions saw the record of the other one.
    while ((await assignOwners(database, 10)) > 0);
    const rows: readonly { readonly what: string }[] = (await observer.query(wrong)).rows;
    const records = await differences({ database });
    const whats = [
      ...rows.map(({ what }) => what),
      ...records.map(({ detail }) => `records: ${JSON.stringify(detail)}`),
    ];
    found.push(...whats.map((what) => `${[order, ...errors].join(' ')}: ${what}`));
  });
  return found;
}

/** The pairs of some transactions, each with itself and with all behind it. */
const pairsOf = (
  transactions: Transactions,
): readonly (readonly [name: string, one: readonly Statement[], other: readonly Statement[]])[] =>
  Object.entries(transactions).flatMap(([name, one], index, all) =>
    all.slice(index).map(([other, two]) => [`${name} | ${other}`, one, two] as const),
  );

for (const [about, transactions] of Object.entries(written)) {
  test(`what triggers keep of ${about} is right, in whatever order two programs write`, async () => {
    await withStage(async (stage) => {
      for (const [name, one, other] of pairsOf(transactions)) assert.deepEqual(await meet(stage, one, other), [], name);
    });
  });
}

test('what triggers keep is right, in whatever order OpenStack Placement and the service write', async () => {
  await withStage(async (stage) => {
    for (const [name, one, other] of pairsOf({ ...upstream, ...stage.service })) {
      assert.deepEqual(await meet(stage, one, other), [], name);
    }
  });
});

test('no limit keeps the former name of a class, in whatever order it is stored and the class gets another name', async () => {
  await withStage(async (stage) => {
    for (const [name, limits] of Object.entries(await limiting(stage.database))) {
      assert.deepEqual(await meet(stage, limits, otherClassName), [], name);
    }
  });
});

test('a tag that a migration makes is right, in whatever order the migration and another program write', async () => {
  await withStage(async (stage) => {
    await stage.observer.query(`set session_replication_role = replica`);
    for (const table of ['consumers', 'saved_consumers'])
      await stage.observer.query(`update ${table} set etag = null where uuid = 'c1'`);
    await stage.observer.query(`set session_replication_role = origin`);
    const backfill = await sentBy(stage.database, (recording) => backfillEtags(recording).runBatch(10), /consumers/);
    const others = { ...written['a consumer'], ...upstream, ...stage.service };
    for (const [name, other] of Object.entries(others)) {
      assert.deepEqual(await meet(stage, backfill, other), [], name);
    }
  });
});

/** Mistakes in the database, and the two transactions that show each of them. */
const mistakes: readonly (readonly [mistake: string, about: string, one: string, other: string, shown: RegExp])[] = [
  [
    `create or replace function etag_owner_changed() returns trigger language plpgsql as $x$ begin
      update consumers c set etag = etag_of_allocations(c) where project_id = new.id;
      return null;
    end $x$`,
    'a consumer',
    'insertion',
    'other name of the project',
    /^A1 B1 Ac Bc: tag of consumer c1$/,
  ],
  [
    'drop trigger usages_made on consumers',
    'a consumer without a record',
    'the record',
    'the record',
    /: usage of 1 off by /,
  ],
  ['drop trigger usage_owner on consumers', 'a consumer', 'insertion', 'other project', /: records: /],
  ['drop trigger log_delete on allocations', 'a consumer', 'deletion', 'other name', /: log of usages of provider 1$/],
];

for (const [mistake, about, one, other, shown] of mistakes) {
  test(`it is noticed: ${mistake.split(' returns')[0]}`, async () => {
    await withStage(async (stage) => {
      await stage.observer.query(mistake);
      const found = await meet(stage, written[about]?.[one] ?? [], written[about]?.[other] ?? []);
      assert.match(found.find((each) => shown.test(each)) ?? '', shown, found.join('\n'));
    });
  });
}
