import assert from 'node:assert/strict';
import { type RawBuilder, sql } from 'kysely';
import { hasSqlstate, isLostRace, sqlstate } from '../../db/engine/failures.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import type { Random } from '../races/random.ts';
import { at } from '../support/requests.ts';
import { classes, hosts, run, together, type World } from './world.ts';

/*
 * Random steps by the service and by other programs. Each is one transaction, and may fail where another writer was faster.
 */

/** A writer of a random history, and the consumers that it writes. */
export type Actor = {
  readonly world: World;
  readonly random: Random;
  /** Consumers of all actors. Each writer of their allocations locks their records. */
  readonly shared: readonly string[];
  /** Consumers of this actor alone, which may lose their records, and get new ones. */
  readonly own: readonly string[];
  /** Consumers of all actors that never have a record. */
  readonly unrecorded: readonly string[];
};

type Step = (actor: Actor) => Promise<void>;

type Amounts = Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>;

const someAmounts = (random: Random): Amounts =>
  Object.fromEntries(
    Array.from({ length: 1 + random.below(2) }, () => [
      random.pick(hosts),
      {
        resources: Object.fromEntries(
          Array.from({ length: 1 + random.below(2) }, () => [random.pick(classes), 1 + random.below(3)]),
        ),
      },
    ]),
  );

const anyOf = ({ random, shared, own }: Actor): string => random.pick([...shared, ...own]);

/** A body of a claim as the consumer is now. */
async function bodyFor({ world, random }: Actor, consumer: string): Promise<Readonly<Record<string, unknown>>> {
  const { json } = await world.send('GET', `/allocations/${consumer}`);
  const known = at(json, 'consumer_generation') !== undefined;
  const held = at(json, 'allocations') as Record<string, { readonly resources: Readonly<Record<string, number>> }>; // as openapi.yaml says
  const isSame = known && random.percent(20);
  const keepsOwner = known && random.percent(70);
  return {
    allocations: isSame
      ? Object.fromEntries(Object.entries(held).map(([host, { resources }]) => [host, { resources }]))
      : someAmounts(random),
    project_id: keepsOwner ? at(json, 'project_id') : random.pick(['p', 'q']),
    user_id: keepsOwner ? at(json, 'user_id') : random.pick(['u', 'v']),
    consumer_type: keepsOwner ? at(json, 'consumer_type') : random.pick(['INSTANCE', 'X']),
    consumer_generation: known ? at(json, 'consumer_generation') : null,
  };
}

async function sent({ world }: Actor, method: string, path: string, body?: unknown): Promise<void> {
  const { status, text, request } = await world.send(method, path, body);
  assert.ok(status < 400 || [404, 409, 503].includes(status), `${request}: ${status} ${text}`);
}

/** Runs statements of another program. */
async function written({ world }: Actor, statements: readonly RawBuilder<unknown>[]): Promise<void> {
  try {
    await together(world, statements);
  } catch (error) {
    const isUsual = isLostRace(error) || hasSqlstate(error, sqlstate.uniqueViolation, sqlstate.lockNotAvailable);
    if (!isUsual) throw error;
  }
}

/** Inserts an allocation, if the consumer has a record, or if that does not matter. */
const inserted = (consumer: string, host: string, name: string, used: number, isRecorded = true): RawBuilder<unknown> =>
  sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    select p.id, r.id, ${consumer}, ${used}::integer from resource_providers p, resource_classes r
    where p.uuid = ${host} and r.name = ${name} ${isRecorded ? sql`and exists (select from consumers where uuid = ${consumer})` : sql``}`;

const locked = (consumer: string): RawBuilder<unknown> =>
  sql`select from consumers where uuid = ${consumer} for update`;

const otherOwner = (random: Random, consumer: string): RawBuilder<unknown> =>
  sql`update consumers set project_id = (select id from projects where external_id = ${random.pick(['p', 'q'])}),
    user_id = (select id from users where external_id = ${random.pick(['u', 'v'])}) where uuid = ${consumer}`;

/** As OpenStack Placement replaces allocations, row by row, with the owner before, amid or after them. */
function replaced(random: Random, consumer: string, content = random.below(3)): readonly RawBuilder<unknown>[] {
  const rows = Object.entries(someAmounts(random)).flatMap(([host, { resources }]) =>
    Object.entries(resources).map(([name, used]) => inserted(consumer, host, name, used)),
  );
  // The same rows again, one by one.
  const again = [0, 1, 2, 3].map(
    (place) => sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      select resource_provider_id, resource_class_id, consumer_id, used from former offset ${sql.lit(place)} limit 1`,
  );
  const former = [
    sql`create temporary table former on commit drop as select * from allocations where consumer_id = ${consumer} order by id`,
  ];
  const statements = [
    sql`delete from allocations where consumer_id = ${consumer}`,
    ...(content === 0 ? rows : content === 1 ? again : [...again.slice(0, 2), ...rows.slice(0, 1)]),
  ];
  if (random.percent(30)) statements.splice(random.below(statements.length + 1), 0, otherOwner(random, consumer));
  if (random.percent(30)) {
    const place = random.below(statements.length + 1);
    const undone = [
      sql`savepoint one`,
      sql`delete from allocations where consumer_id = ${consumer}`,
      inserted(consumer, random.pick(hosts), 'VCPU', 9),
      sql`rollback to one`,
    ];
    statements.splice(place, 0, ...undone);
  }
  return [locked(consumer), ...(content === 0 ? [] : former), ...statements];
}

/** By name, how often each is chosen, and the step. */
const steps: Readonly<Record<string, readonly [number, Step]>> = {
  claim: [
    30,
    async (actor) => {
      const consumer = anyOf(actor);
      await sent(actor, 'PUT', `/allocations/${consumer}`, await bodyFor(actor, consumer));
    },
  ],
  'claim for several': [
    10,
    async (actor) => {
      const consumers = [...new Set([anyOf(actor), anyOf(actor), anyOf(actor)])];
      const bodies = await Promise.all(consumers.map(async (each) => [each, await bodyFor(actor, each)] as const));
      await sent(actor, 'POST', '/allocations', Object.fromEntries(bodies));
    },
  ],
  owner: [
    10,
    async (actor) => {
      const consumer = anyOf(actor);
      const { allocations: _, ...owner } = await bodyFor(actor, consumer);
      await sent(actor, 'PUT', `/consumers/${consumer}`, owner);
    },
  ],
  release: [10, (actor) => sent(actor, 'DELETE', `/allocations/${anyOf(actor)}`)],
  reshape: [
    8,
    async (actor) => {
      const consumer = anyOf(actor);
      const host = actor.random.pick(hosts);
      const { json } = await actor.world.send('GET', `/resource_providers/${host}/inventories`);
      const allocations = { [consumer]: await bodyFor(actor, consumer) };
      await sent(actor, 'POST', '/reshaper', { inventories: { [host]: json }, allocations });
    },
  ],
  term: [
    6,
    async (actor) => {
      const { world } = actor;
      await written(actor, [
        sql`insert into consumer_terms select id, generation, now() from consumers where uuid = ${anyOf(actor)}
          on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at`,
      ]);
      await removeEnded(world.database, firstPosition, 10).catch((error: unknown) => {
        if (!hasSqlstate(error, sqlstate.lockNotAvailable) && !isLostRace(error)) throw error;
      });
    },
  ],
  'replace by another program': [30, (actor) => written(actor, replaced(actor.random, anyOf(actor)))],
  'new consumer of another program': [
    10,
    (actor) => {
      const consumer = anyOf(actor);
      return written(actor, [
        sql`insert into consumers (uuid, project_id, user_id) select ${consumer}, p.id, u.id from projects p, users u
          where p.external_id = 'p' and u.external_id = 'u' on conflict do nothing`,
        ...replaced(actor.random, consumer, 0),
      ]);
    },
  ],
  'owner by SQL': [8, (actor) => written(actor, [otherOwner(actor.random, anyOf(actor))])],
  'update by SQL': [
    8,
    (actor) => {
      const consumer = anyOf(actor);
      return written(actor, [
        locked(consumer),
        sql`update allocations set used = used + ${actor.random.below(2)}::integer where consumer_id = ${consumer}`,
      ]);
    },
  ],
  'one less, or one more, by SQL': [
    8,
    (actor) => {
      const consumer = anyOf(actor);
      const { random } = actor;
      return written(actor, [
        locked(consumer),
        random.percent(50)
          ? sql`delete from allocations where id = (select id from allocations where consumer_id = ${consumer} order by id limit 1)`
          : inserted(consumer, random.pick(hosts), random.pick(classes), 1),
      ]);
    },
  ],
  'release by SQL': [
    6,
    (actor) => {
      const consumer = anyOf(actor);
      return written(actor, [
        locked(consumer),
        sql`delete from allocations where consumer_id = ${consumer}`,
        sql`delete from consumers where uuid = ${consumer}`,
      ]);
    },
  ],
  'a record is deleted': [
    5,
    (actor) => written(actor, [sql`delete from consumers where uuid = ${actor.random.pick(actor.own)}`]),
  ],
  'a record is made': [
    5,
    (actor) =>
      written(actor, [
        sql`insert into consumers (uuid, project_id, user_id) select ${actor.random.pick(actor.own)}, p.id, u.id from projects p, users u
          where p.external_id = 'p' and u.external_id = 'u' on conflict do nothing`,
      ]),
  ],
  'no record': [
    20,
    (actor) => {
      const { random } = actor;
      const consumer = random.pick(actor.unrecorded);
      return written(actor, [
        random.percent(50)
          ? inserted(consumer, random.pick(hosts.slice(0, 1)), 'VCPU', 1, false)
          : sql`delete from allocations where id = (select id from allocations where consumer_id = ${consumer} order by id offset ${sql.lit(random.below(2))} limit 1)`,
      ]);
    },
  ],
  name: [
    5,
    (actor) =>
      written(actor, [
        sql`insert into consumer_names select id, ${actor.random.pick(['web', 'db'])} from consumers where uuid = ${anyOf(actor)} for update
          on conflict (consumer_id) do update set name = excluded.name`,
      ]),
  ],
};

const weighted = Object.entries(steps).flatMap(([name, [weight]]) => Array.from({ length: weight }, () => name));

/** Makes a random step. @returns its name */
export async function step(actor: Actor): Promise<string> {
  const name = actor.random.pick(weighted);
  await steps[name]?.[1](actor);
  return name;
}

/** The owners that steps by SQL need. */
export const makeOwners = (world: World): Promise<unknown> =>
  run(
    world,
    sql`with p as (insert into projects (external_id) values ('p'), ('q')), t as (insert into consumer_types (name) values ('INSTANCE'), ('X'))
      insert into users (external_id) values ('u'), ('v')`,
  );
