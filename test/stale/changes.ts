import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Database } from '../../db/engine/connect.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import type { Random } from '../races/random.ts';
import { someOf } from '../races/random.ts';
import { newClaim, type Send } from '../support/requests.ts';
import { changesBySql } from './changes_by_sql.ts';
import { aggregates, classes, consumers, type KnownProvider, sharingTrait, traits, type World } from './world.ts';

/** Another process and another program, and what they know. */
export type Others = {
  readonly send: Send;
  readonly database: Database;
  readonly client: pg.Client;
  readonly random: Random;
  readonly world: World;
  /** The providers that a change has chosen are added. */
  readonly touched: Set<string>;
};

/** Changes the database once, in one of all ways. It may be refused. @throws Error if the answer is a failure of the service */
export async function changeOnce(others: Others): Promise<string> {
  const { random } = others;
  // A fleet that is large enough for choices, and small enough for the same providers to be chosen again.
  const count = others.world.providers.length;
  const kind = count < 8 ? 'makeRoot' : count > 18 ? 'removeLeaf' : random.pick(kinds);
  if (kind in byApi) await byApi[kind as keyof typeof byApi](others);
  else await runSql(others, changesBySql[kind]?.(others) ?? '');
  return kind;
}

const one = ({ uuid }: Pick<KnownProvider, 'uuid'>): string => `/resource_providers/${uuid}`;

/** A provider, which the change is about. */
export function any({ random, world, touched }: Others, among = world.providers): KnownProvider {
  const provider = random.pick(among);
  touched.add(provider.uuid);
  return provider;
}

async function request({ send }: Others, ...[method, path, body, version]: Parameters<Send>): Promise<void> {
  const { status, text } = await send(method, path, body, version);
  if (status >= 500) throw new Error(`${method} ${path}: ${status} ${text}`);
}

const stock = (random: Random): object => {
  const stocked = [...(random.percent(85) ? ['VCPU'] : []), ...someOf(random, classes)];
  return Object.fromEntries(stocked.map((name) => [name, { total: 2 + random.below(15) }]));
};

const allocations = (others: Others): Record<string, Record<string, number>> => {
  const { random } = others;
  return { [any(others).uuid]: { [random.pick(classes)]: 1 + random.below(3) } };
};

const put = (others: Others, uuid: string, body: object) =>
  request(others, 'PUT', `/allocations/${uuid}`, {
    ...newClaim({}),
    ...body,
    consumer_generation: others.world.generations.get(uuid) ?? null,
  });

/** A provider that has no children. */
function leaf(others: Others): KnownProvider {
  const { providers } = others.world;
  const parents = new Set(providers.map(({ parent }) => parent));
  return any(
    others,
    providers.filter(({ uuid }) => !parents.has(uuid)),
  );
}

const remove = (others: Others, provider: KnownProvider) => request(others, 'DELETE', one(provider));

const make = (others: Others, uuid: string, parent: string | undefined) =>
  request(others, 'POST', '/resource_providers', {
    uuid,
    name: randomUUID(),
    ...(parent === undefined ? {} : { parent_provider_uuid: parent }),
  });

const rename = (others: Others, from: string, to: string) =>
  request(others, 'PUT', `/resource_classes/${from}`, { name: to }, 'placement 1.6');

/** What another process of the service does, each by one request or a few. */
const byApi = {
  move: (others: Others) => {
    const { uuid } = any(others);
    const parent = others.random.percent(20) ? null : any(others).uuid;
    return request(others, 'PUT', `/resource_providers/${uuid}`, { name: randomUUID(), parent_provider_uuid: parent });
  },
  makeChild: (others: Others) => make(others, randomUUID(), any(others).uuid),
  makeRoot: async (others: Others) => {
    const uuid = randomUUID();
    await make(others, uuid, undefined);
    const inventories = { VCPU: { total: 4 }, ...stock(others.random) };
    await request(others, 'PUT', `/resource_providers/${uuid}/inventories`, {
      resource_provider_generation: 0,
      inventories,
    });
  },
  removeLeaf: (others: Others) => remove(others, leaf(others)),
  makeLeafAgain: async (others: Others) => {
    const provider = leaf(others);
    await remove(others, provider);
    await make(others, provider.uuid, others.random.percent(50) ? any(others).uuid : undefined);
  },
  putInventories: (others: Others) => {
    const provider = any(others);
    const body = { resource_provider_generation: provider.generation, inventories: stock(others.random) };
    return request(others, 'PUT', `${one(provider)}/inventories`, body);
  },
  postInventory: (others: Others) => {
    const body = { resource_class: others.random.pick(classes), total: 1 + others.random.below(10) };
    return request(others, 'POST', `${one(any(others))}/inventories`, body);
  },
  putTraits: (others: Others) => {
    const provider = any(others);
    const worn = [...someOf(others.random, traits), ...(others.random.percent(15) ? [sharingTrait] : [])];
    const body = { resource_provider_generation: provider.generation, traits: worn };
    return request(others, 'PUT', `${one(provider)}/traits`, body);
  },
  putAggregates: (others: Others) => {
    const provider = any(others);
    const body = { resource_provider_generation: provider.generation, aggregates: someOf(others.random, aggregates) };
    return request(others, 'PUT', `${one(provider)}/aggregates`, body);
  },
  putLastAggregates: (others: Others) =>
    request(others, 'PUT', `${one(any(others))}/aggregates`, someOf(others.random, aggregates), 'placement 1.18'),
  renameClass: (others: Others) => rename(others, others.random.pick(['CUSTOM_A', 'CUSTOM_B']), 'CUSTOM_C'),
  renameClassBack: (others: Others) => rename(others, 'CUSTOM_C', others.random.pick(['CUSTOM_A', 'CUSTOM_B'])),
  swapClasses: async (others: Others) => {
    await rename(others, 'CUSTOM_A', 'CUSTOM_BETWEEN');
    await rename(others, 'CUSTOM_B', 'CUSTOM_A');
    await rename(others, 'CUSTOM_BETWEEN', 'CUSTOM_B');
  },
  removeClass: (others: Others) => request(others, 'DELETE', '/resource_classes/CUSTOM_B'),
  makeClass: (others: Others) =>
    request(others, 'PUT', `/resource_classes/${others.random.pick(['CUSTOM_A', 'CUSTOM_B'])}`),
  makeClassAgain: async (others: Others) => {
    await request(others, 'DELETE', '/resource_classes/CUSTOM_B');
    await request(others, 'PUT', '/resource_classes/CUSTOM_C');
    await request(others, 'PUT', '/resource_classes/CUSTOM_B');
  },
  removeTrait: (others: Others) => request(others, 'DELETE', '/traits/CUSTOM_T'),
  makeTrait: (others: Others) => request(others, 'PUT', `/traits/${others.random.pick(['CUSTOM_S', 'CUSTOM_T'])}`),
  claim: (others: Others) => {
    const body = newClaim(allocations(others));
    return put(others, others.random.pick(consumers), body);
  },
  claimByQuery: (others: Others) => {
    const { allocations: _, ...body } = newClaim({});
    const candidates = `resources=VCPU:${1 + others.random.below(2)}`;
    return request(others, 'PUT', `/allocations/${others.random.pick(consumers)}`, { ...body, candidates });
  },
  release: (others: Others) => request(others, 'DELETE', `/allocations/${others.random.pick(consumers)}`),
  reshape: (others: Others) => {
    const provider = any(others);
    const inventories = { resource_provider_generation: provider.generation, inventories: stock(others.random) };
    return request(others, 'POST', '/reshaper', { inventories: { [provider.uuid]: inventories }, allocations: {} });
  },
  endTerm: async (others: Others) => {
    await put(others, others.random.pick(consumers), { ...newClaim(allocations(others)), expires_in: 3600 });
    await others.client.query('update consumer_terms set expires_at = now()');
    await removeEnded(others.database, firstPosition, 256);
  },
} as const;

const kinds = [...Object.keys(byApi), ...Object.keys(changesBySql)];

/** If a constraint refuses the statement, nothing changes. */
async function runSql({ client }: Others, statement: string): Promise<void> {
  try {
    await client.query(statement);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('23')) throw error;
  }
}
