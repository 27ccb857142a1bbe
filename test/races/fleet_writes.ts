import pg from 'pg';
import type { PlacementService as Service } from '../../src/start/service.ts';
import { at, requestsTo } from '../support/requests.ts';
import { type Random, randomUuid, someOf } from './random.ts';

/** The names for random writes: everything that some write has made, even if it no longer exists. */
export type Stock = {
  readonly providers: string[];
  readonly names: string[];
  readonly consumers: string[];
  readonly aggregates: readonly string[];
  readonly traits: readonly string[];
  readonly classes: readonly string[];
};

export const newStock = (random: Random): Stock => ({
  providers: [],
  names: [],
  consumers: Array.from({ length: 6 }, () => randomUuid(random)),
  aggregates: Array.from({ length: 3 }, () => randomUuid(random)),
  traits: ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'CUSTOM_A', 'CUSTOM_B'],
  classes: ['VCPU', 'MEMORY_MB', 'CUSTOM_C', 'CUSTOM_D'],
});

/** A random write through the API, which may be refused. @throws Error if it answers 500 or above */
export async function writeByApi(service: Service, stock: Stock, random: Random): Promise<void> {
  const send = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const { request, status, text, json } = await requestsTo(service)(method, path, body);
    if (status >= 500) throw new Error(`${request}: ${status} ${text}`);
    return json;
  };
  const provider = () => (stock.providers.length === 0 ? randomUuid(random) : random.pick(stock.providers));
  const one = (uuid: string) => `/resource_providers/${uuid}`;
  const generationOf = async (uuid: string) => at(await send('GET', one(uuid)), 'generation') ?? 0;
  const claim = async (uuid: string, isEmpty: boolean) => {
    const known = await send('GET', `/allocations/${uuid}`);
    const resources = Object.fromEntries(someOf(random, stock.classes).map((name) => [name, 1 + random.below(3)]));
    return {
      allocations: isEmpty || Object.keys(resources).length === 0 ? {} : { [provider()]: { resources } },
      project_id: 'p',
      user_id: 'u',
      consumer_type: 'INSTANCE',
      consumer_generation: at(known, 'consumer_generation') ?? null,
    };
  };
  const inventories = () =>
    Object.fromEntries(
      someOf(random, stock.classes).map((name) => [name, { total: 10 + random.below(90), allocation_ratio: 1.5 }]),
    );
  const choices: readonly (() => Promise<unknown>)[] = [
    () => {
      const uuid = randomUuid(random);
      const name = `p${random.below(40)}`;
      stock.providers.push(uuid);
      stock.names.push(name);
      const parent = random.percent(60) && stock.providers.length > 1 ? { parent_provider_uuid: provider() } : {};
      return send('POST', '/resource_providers', { name, uuid, ...parent });
    },
    () => send('PUT', one(provider()), { name: `p${random.below(40)}` }),
    () =>
      send('PUT', one(provider()), {
        name: `p${random.below(40)}`,
        parent_provider_uuid: random.percent(25) ? null : provider(),
      }),
    () => send('DELETE', one(provider())),
    async () => {
      const uuid = provider();
      const body = { resource_provider_generation: await generationOf(uuid), inventories: inventories() };
      return send('PUT', `${one(uuid)}/inventories`, body);
    },
    () => send('DELETE', `${one(provider())}/inventories/${random.pick(stock.classes)}`),
    async () => {
      const uuid = provider();
      const body = { resource_provider_generation: await generationOf(uuid), traits: someOf(random, stock.traits) };
      return send('PUT', `${one(uuid)}/traits`, body);
    },
    async () => {
      const uuid = provider();
      const body = {
        resource_provider_generation: await generationOf(uuid),
        aggregates: someOf(random, stock.aggregates),
      };
      return send('PUT', `${one(uuid)}/aggregates`, body);
    },
    async () => {
      const uuid = random.pick(stock.consumers);
      return send('PUT', `/allocations/${uuid}`, await claim(uuid, random.percent(20)));
    },
    async () => {
      const uuid = random.pick(stock.consumers);
      return send('PUT', `/allocations/${uuid}`, await claim(uuid, false));
    },
    async () => {
      const uuids = someOf(random, stock.consumers);
      const claims = await Promise.all(uuids.map(async (uuid) => [uuid, await claim(uuid, random.percent(30))]));
      return send('POST', '/allocations', Object.fromEntries(claims));
    },
    async () => {
      const uuid = provider();
      const body = { resource_provider_generation: await generationOf(uuid), inventories: inventories() };
      return send('POST', '/reshaper', { inventories: { [uuid]: body }, allocations: {} });
    },
    () => send('DELETE', `/allocations/${random.pick(stock.consumers)}`),
    () => send('PUT', `/traits/${random.pick(['CUSTOM_A', 'CUSTOM_B'])}`),
    () => send('DELETE', `/traits/${random.pick(['CUSTOM_A', 'CUSTOM_B'])}`),
    () => send('PUT', `/resource_classes/${random.pick(['CUSTOM_C', 'CUSTOM_D'])}`),
    () => send('DELETE', `/resource_classes/${random.pick(['CUSTOM_C', 'CUSTOM_D'])}`),
  ];
  await random.pick(choices)();
}

/** A random statement of the kinds that other programs may run. If a constraint refuses it, nothing changes. */
export async function writeBySql(client: pg.Client, random: Random): Promise<void> {
  const number = () => random.below(50);
  const anyOf = (table: string) => `(select id from ${table} order by random() limit 1)`;
  const some = (chance = 20) => `random() < ${chance / 100}`;
  const provider = anyOf('resource_providers');
  const uuid = randomUuid(random);
  const statements: readonly string[] = [
    `insert into resource_providers (uuid, name, generation) values ('${uuid}', 'p${number()}', ${number()})`,
    `insert into resource_providers (uuid, name) values ('${uuid}', null)`,
    `insert into resource_providers (uuid, name, generation, parent_provider_id, root_provider_id)
     select '${uuid}', 'p${number()}', 0, id, root_provider_id from resource_providers order by random() limit 1`,
    `update resource_providers set name = null where ${some()}`,
    `update resource_providers set name = 'p${number()}' where id = ${provider}`,
    // Two providers swap their names in one transaction.
    `do $$ declare a integer := ${provider}; b integer := ${provider}; name_a text; name_b text; begin
       select name into name_a from resource_providers where id = a; select name into name_b from resource_providers where id = b;
       update resource_providers set name = 'between' where id = a; update resource_providers set name = name_a where id = b and a <> b;
       update resource_providers set name = name_b where id = a; end $$`,
    `update resource_providers set uuid = '${uuid}' where id = ${provider}`,
    `update resource_providers set generation = coalesce(generation, 0) + 1, updated_at = now() where ${some()}`,
    `update resource_providers set created_at = now(), updated_at = null where ${some()}`,
    // Two ways to set a new parent: the first seldom makes a loop, the second often.
    `update resource_providers c set parent_provider_id = p.id, root_provider_id = null
     from (select id from resource_providers order by random() limit 1) as p where p.id < c.id and ${some(30)}`,
    `update resource_providers set parent_provider_id = ${provider} where id = ${provider}`,
    `update resource_providers set parent_provider_id = null where ${some()}`,
    `update resource_providers set root_provider_id = null where ${some(50)}`,
    `delete from resource_providers p where not exists (select from resource_providers c where c.parent_provider_id = p.id or
       (c.root_provider_id = p.id and c.id <> p.id)) and not exists (select from resource_provider_traits t where
       t.resource_provider_id = p.id) and ${some(15)}`,
    `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
       allocation_ratio) select p.id, c.id, ${number()}, 0, 1, 100, 1, 0.1 from resource_providers p,
       (select id from resource_classes where id < 3 or id >= 10000) as c where ${some(5)} on conflict do nothing`,
    `update inventories set total = ${number()}, allocation_ratio = 16.3, updated_at = now() where ${some()}`,
    `update inventories set resource_provider_id = ${provider} where id = ${anyOf('inventories')}`,
    `update inventories set resource_class_id = 2 where id = ${anyOf('inventories')}`,
    `delete from inventories where ${some()}`,
    `insert into resource_provider_traits (resource_provider_id, trait_id)
     select p.id, t.id from resource_providers p, (select id from traits order by random() limit 3) as t where ${some()}
     on conflict do nothing`,
    `update resource_provider_traits set resource_provider_id = ${provider} where resource_provider_id = ${provider}`,
    `delete from resource_provider_traits where ${some()}`,
    `insert into placement_aggregates (uuid) values ('${uuid}')`,
    `insert into resource_provider_aggregates (resource_provider_id, aggregate_id)
     select p.id, a.id from resource_providers p, placement_aggregates a where ${some()} on conflict do nothing`,
    `update resource_provider_aggregates set resource_provider_id = ${provider} where resource_provider_id = ${provider}`,
    `delete from resource_provider_aggregates where ${some()}`,
    `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
     select resource_provider_id, resource_class_id, '${uuid}', ${number()} from inventories where ${some()}`,
    `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
     select ${provider}, ${anyOf('resource_classes')}, '${uuid}', ${number()}`,
    `update allocations set used = used + ${number()} where ${some()}`,
    `update allocations set used = used + 1, resource_provider_id = ${provider} where ${some()}`,
    `update allocations set resource_class_id = ${random.below(3)} where ${some()}`,
    `delete from allocations where ${some(30)}`,
    `insert into traits (name) values ('CUSTOM_T${number()}')`,
    `update traits set name = 'CUSTOM_T${number()}' where id = ${anyOf('traits')}`,
    `delete from traits where name like 'CUSTOM%' and ${some()}`,
    `insert into resource_classes (id, name) values (${10_000 + number()}, 'CUSTOM_R${number()}')`,
    `update resource_classes set name = 'CUSTOM_R${number()}' where id >= 10000 and ${some(30)}`,
    `delete from resource_classes where id >= 10000 and ${some()}`,
  ];
  const rare: readonly string[] = [
    `delete from placement_aggregates where ${some(10)}`,
    `update placement_aggregates set uuid = '${uuid}' where id = ${anyOf('placement_aggregates')}`,
    'truncate allocations',
    'truncate inventories',
    'truncate resource_provider_traits',
    'truncate resource_provider_aggregates',
    'truncate placement_aggregates',
    'truncate resource_providers cascade',
  ];
  const count = 1 + random.below(3);
  const chosen = Array.from({ length: count }, () => random.pick(random.percent(2) ? rare : statements));
  const isTogether = random.percent(40);
  if (isTogether) await client.query('begin');
  for (const statement of chosen) {
    try {
      if (isTogether) await client.query('savepoint before');
      await client.query(statement);
    } catch (error) {
      // A constraint refused the statement, or another writer blocked it. An invalid statement is a mistake in this
      // file.
      if (!(error instanceof pg.DatabaseError) || error.code?.startsWith('42')) throw error;
      if (isTogether) await client.query('rollback to savepoint before');
    }
  }
  if (isTogether) await client.query(random.percent(80) ? 'commit' : 'rollback');
}
