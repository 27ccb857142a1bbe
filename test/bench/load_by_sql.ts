import type { Query } from '../races/server_process.ts';
import { type Inventory, type ProviderShape, project, usedResources, user } from './data_set.ts';

/*
 * Puts a data set into a database by SQL. Only upstream's tables and columns are used, so it works on the database of an
 * OpenStack Placement, too.
 */

/*
 * By this setting the triggers leave the entity tags to the statements, which do not write them either: computing them
 * takes most of the time, and nothing that is measured reads them. The online data migrations would fill them.
 */
const withoutTags = (whose: 'providers' | 'written'): string =>
  `(select set_config('placement.etags', '${whose}', true)) as settings`;

/** Loads `count` trees. The standard traits and classes must exist, as they do after the first start of a server. */
export async function loadTrees(query: Query, shapes: readonly ProviderShape[], count: number): Promise<void> {
  await insertTrees(query, shapes, count);
  // Otherwise autovacuum would do this in the middle of a measurement.
  await query('vacuum analyze');
}

/** The same for a load that is a part of a measurement. */
export async function insertTrees(query: Query, shapes: readonly ProviderShape[], count: number): Promise<void> {
  for (const shape of shapes) {
    await insertProviders(query, shape, count);
    await insertInventories(query, shape, count);
    await insertTraits(query, shape, count);
    if (!shape.populated) continue;
    await insertAggregates(query, shape, count);
    await insertAllocations(query, shape, count);
  }
}

/** Removes every provider and consumer. */
export async function removeAll(query: Query): Promise<void> {
  await query(`truncate resource_providers, inventories, allocations, consumers, resource_provider_traits,
    resource_provider_aggregates, placement_aggregates cascade`);
}

/**
 * Updates the inventories of `count` providers of the kind, from number `first` on, without changing them, as an agent
 * does that writes the same inventories again.
 */
export async function touchInventories(query: Query, { kind }: ProviderShape, first: number, count: number) {
  await query(`update inventories set updated_at = now()
    where resource_provider_id in (select id from ${providersOf(kind, first, count)})`);
}

async function insertProviders(query: Query, { kind, parent }: ProviderShape, count: number): Promise<void> {
  const columns = 'created_at, updated_at, uuid, name, generation';
  const values = `now(), now(), ${uuidSql(`'${kind}-' || n`)}, '${kind}-' || n, 1`;
  if (parent !== undefined) {
    await query(`insert into resource_providers (${columns}, root_provider_id, parent_provider_id)
      select ${values}, root_provider_id, id from ${providersOf(parent, 1, count)}, ${withoutTags('providers')}`);
    return;
  }
  await query(`insert into resource_providers (${columns}, id, root_provider_id) select ${values}, id, id
    from (select n, nextval(pg_get_serial_sequence('resource_providers', 'id')) as id from generate_series(1, ${count}) as n) as p,
      ${withoutTags('providers')}`);
}

async function insertInventories(query: Query, { kind, inventories }: ProviderShape, count: number): Promise<void> {
  const row = ([resourceClass, inventory]: [string, Inventory]): string => {
    const { total, reserved = 0, min = 1, max = 2147483647, step = 1, ratio = 1 } = inventory;
    return `('${resourceClass}', ${[total, reserved, min, max, step, ratio].join(', ')})`;
  };
  await query(`insert into inventories (created_at, updated_at, resource_provider_id, resource_class_id,
      total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select now(), now(), p.id, c.id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.ratio
    from ${withoutTags('providers')}, ${providersOf(kind, 1, count)},
      (values ${Object.entries(inventories).map(row).join(', ')})
        as i (class, total, reserved, min_unit, max_unit, step_size, ratio)
      join resource_classes c on c.name = i.class`);
}

async function insertTraits(query: Query, shape: ProviderShape, count: number): Promise<void> {
  const { kind, traits, traitsRepeatAfter } = shape;
  const rows = Array.from({ length: traitsRepeatAfter }, (_, n) =>
    traits(n).map((trait) => `(${n}, '${trait}')`),
  ).flat();
  if (rows.length === 0) return;
  await query(`insert into traits (created_at, name) select distinct now()::timestamp, name
    from (values ${rows.join(', ')}) as has (n, name) on conflict do nothing`);
  await query(`insert into resource_provider_traits (created_at, resource_provider_id, trait_id)
    select now(), p.id, t.id from ${withoutTags('providers')}, ${providersOf(kind, 1, count)}
      join (values ${rows.join(', ')}) as has (n, name) on has.n = p.n % ${traitsRepeatAfter}
      join traits t on t.name = has.name`);
}

async function insertAggregates(query: Query, { kind }: ProviderShape, count: number): Promise<void> {
  await query(`insert into placement_aggregates (created_at, uuid)
    select now(), ${uuidSql(`'aggregate-' || n`)} from generate_series(0, 9) as n on conflict do nothing`);
  await query(`insert into resource_provider_aggregates (created_at, resource_provider_id, aggregate_id)
    select now(), p.id, a.id from ${withoutTags('providers')}, ${providersOf(kind, 1, count)}
      join placement_aggregates a on a.uuid = ${uuidSql(`'aggregate-' || p.n % 10`)}`);
}

async function insertAllocations(query: Query, { kind }: ProviderShape, count: number): Promise<void> {
  const owner = (table: string, name: string): string => `(select id from ${table} where external_id = '${name}')`;
  const consumer = uuidSql(`'consumer-' || p.n`);
  const used = Object.entries(usedResources).map(([resourceClass, amount]) => `('${resourceClass}', ${amount})`);
  await query(`insert into projects (created_at, external_id) values (now(), '${project}') on conflict do nothing`);
  await query(`insert into users (created_at, external_id) values (now(), '${user}') on conflict do nothing`);
  await query(`insert into consumer_types (created_at, name) values (now(), 'INSTANCE') on conflict do nothing`);
  await query(`insert into consumers (created_at, updated_at, uuid, project_id, user_id, generation, consumer_type_id)
    select now(), now(), ${consumer}, ${owner('projects', project)}, ${owner('users', user)}, 1,
      (select id from consumer_types where name = 'INSTANCE')
    from ${providersOf(kind, 1, count)} where p.n % 2 = 0`);
  await query(`insert into allocations (created_at, updated_at, resource_provider_id, consumer_id, resource_class_id, used)
    select now(), now(), p.id, ${consumer}, c.id, u.used
    from ${withoutTags('written')}, ${providersOf(kind, 1, count)}, (values ${used.join(', ')}) as u (class, used)
      join resource_classes c on c.name = u.class where p.n % 2 = 0`);
}

/** The rows of `count` providers of a kind from number `first` on, each with its number. */
const providersOf = (kind: string, first: number, count: number): string =>
  `(select n, r.* from generate_series(${first}, ${first + count - 1}) as n join resource_providers r on r.name = '${kind}-' || n) as p`;

const uuidSql = (name: string): string =>
  `overlay(overlay(md5(${name}) placing '4' from 13) placing '8' from 17)::uuid::text`;
