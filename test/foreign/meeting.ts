import { type Database, openDatabase } from '../../db/engine/connect.ts';
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
  insert into traits (id, name) values (100001, 'CUSTOM_A'), (100002, 'CUSTOM_B'), (100003, 'CUSTOM_C');
  insert into resource_provider_traits (resource_provider_id, trait_id) values (2, 100001);
  insert into placement_aggregates (id, uuid) values (1, 'a1'), (2, 'a2'), (3, 'a3');
  insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (2, 1);
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
  'resource_classes limits deleted_limits traits resource_provider_traits placement_aggregates resource_provider_aggregates'
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
const inventory = (providerId: number, classId: number): string =>
  `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    values (${providerId}, ${classId}, 10, 0, 1, 10, 1, 1)`;
const raised = (consumerId: number): string =>
  `update consumers set generation = generation + 1 where id = ${consumerId}`;

/** The statements of transactions by what each does. */
export type Transactions = Readonly<Record<string, readonly Statement[]>>;

/** What programs write, by what each is about: each one meets itself and all others of its group. */
export const written: Readonly<Record<string, Transactions>> = {
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
    'deletion of another one': [
      `delete from inventories where resource_provider_id = 2; delete from resource_provider_traits where resource_provider_id = 2;
      delete from resource_provider_aggregates where resource_provider_id = 2; delete from resource_providers where id = 2`,
    ],
    'other name of the child': [`update resource_providers set name = 'r3 new' where id = 3`],
    'other parent of the child': [
      `update resource_providers set parent_provider_id = 2, root_provider_id = 2 where id = 3`,
    ],
  },
  inventories: {
    'other inventory': ['update inventories set total = 50 where resource_provider_id = 2'],
    'one more inventory': [inventory(2, 2)],
    'no inventory': ['delete from inventories where resource_provider_id = 2'],
  },
  traits: {
    'one more trait': ['insert into resource_provider_traits (resource_provider_id, trait_id) values (2, 100003)'],
    'no trait': ['delete from resource_provider_traits where resource_provider_id = 2'],
    'other name of the trait': [`update traits set name = 'CUSTOM_NEW' where id = 100001`],
    'deletion of the trait': [
      'delete from resource_provider_traits where trait_id = 100001; delete from traits where id = 100001',
    ],
    'deletion of an unused trait': ['delete from traits where id = 100003'],
  },
  aggregates: {
    'one more aggregate': [
      'insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (2, 3)',
    ],
    'no aggregate': ['delete from resource_provider_aggregates where resource_provider_id = 2'],
    'other UUID of the aggregate': [`update placement_aggregates set uuid = 'a1 new' where id = 1`],
  },
};

/** As OpenStack Placement writes: each of them meets what the service writes. */
export const upstream: Transactions = {
  'OpenStack rewrites': [deleted('c1'), inserted('c1', 1), raised(1)],
  'OpenStack releases': [deleted('c1'), `delete from consumers where uuid = 'c1'`],
  'OpenStack names another owner': [`update consumers set project_id = 2 where id = 1`, raised(1)],
};

/** The parts of providers by the numbers that they have in the log. @param prefix of the names of the tables */
const partsIn = (prefix: string): string => `
    select resource_provider_id as provider_id, 2 as part,
      (resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)::text as content from ${prefix}inventories
    union all
    select resource_provider_id, 4, name from ${prefix}resource_provider_traits join ${prefix}traits t on t.id = trait_id
    union all
    select resource_provider_id, 8, uuid from ${prefix}resource_provider_aggregates join ${prefix}placement_aggregates a on a.id = aggregate_id`;

/** Rows of text: what is wrong. A tag may be missing; answers then have one that is computed. */
const wrong = `
  select 'tag of consumer ' || uuid as what from consumers c where etag is not null and etag is distinct from etag_of_allocations(c)
  union all
  select 'tag of provider ' || id from resource_providers p left join resource_provider_etags e on e.resource_provider_id = p.id
    where (e.provider, e.inventories, e.traits, e.aggregates) is distinct from
      (etag_of_provider(p)::varchar, etag_of_inventories(p.id)::varchar, etag_of_traits(p.id)::varchar, etag_of_aggregates(p.id)::varchar)
  union all
  select 'tag of an inventory of provider ' || resource_provider_id from inventories i
    where etag is not null and etag is distinct from etag_of(etag_inventory(i))
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
  select 'log of part ' || part || ' of provider ' || provider_id from (
    select provider_id, part, content from (${['', 'saved_'].map(partsIn).join(' union all ')}) as both_states
      group by 1, 2, 3 having count(*) = 1
  ) as changed where not exists (select from provider_changes l where case
    when whole then coalesce(l.parts, part) & part = part and coalesce(l.provider_id, changed.provider_id) = changed.provider_id
    else l.provider_id is null end)
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

/** The programs, and a database with the scene. */
type Stage = Programs & { readonly database: Database };

/** Calls back with the scene, which a fresh database has. */
export async function withStage(use: (stage: Stage) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Two programs need a PostgreSQL server.');
    const database = await openDatabase(settings);
    try {
      await withPrograms(settings.connection, async (programs) => {
        await programs.observer.query(scene);
        await programs.observer.query(saving);
        await use({ ...programs, database });
      });
    } finally {
      await database.close();
    }
  });
}

/** Lets two transactions meet in all orders. @returns what was wrong, with the orders */
export async function meet(
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
export const pairsOf = (
  transactions: Transactions,
): readonly (readonly [name: string, one: readonly Statement[], other: readonly Statement[]])[] =>
  Object.entries(transactions).flatMap(([name, one], index, all) =>
    all.slice(index).map(([other, two]) => [`${name} | ${other}`, one, two] as const),
  );
