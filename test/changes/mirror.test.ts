/**
 * A mirror that is updated by GET /changes alone equals the truth, after random writes by two services and by SQL. It reads only the
 * reported parts, so a part that is not reported makes it differ. Two others follow a class and a tree. `HISTORIES=1000` runs more
 * of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { type Random, randomFrom, randomUuid, seedFor } from '../races/random.ts';
import { type Engine, engines, freshDatabase, runsOn } from '../support/engines.ts';
import { at, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { openMirror } from './mirror.ts';

const historiesOf = (engine: Engine) => Number(process.env.HISTORIES ?? runsOn(engine, 12));
const steps = 40;

for (const engine of engines) {
  test(`a mirror that follows changes equals the database, on ${engine}`, async (t) => {
    const random = randomFrom(seedFor(t));
    const world = await openWorld(engine);
    try {
      let reported = 0;
      let anew = 0;
      let narrower = 0;
      const histories = historiesOf(engine);
      const enough = histories * 10;
      // Where few of the random writes change a provider, there are more histories.
      for (let history = 0; history < histories || (reported <= enough && history < 4 * histories); history += 1) {
        const mirror = await openMirror(world.send(random));
        const narrowed = [
          await openMirror(world.send(random), { resource_class: random.pick(classes) }),
          await openMirror(world.send(random), { in_tree: world.anyUuid(random) }),
        ];
        let reportedNarrowed = 0;
        const late = engine === 'postgresql' ? await world.beginLate(random) : undefined;
        const lateStep = random.below(steps);
        for (let step = 0; step < steps; step += 1) {
          await world.write(random);
          if (random.percent(25)) reported += await mirror.follow(world.send(random), world.send(random));
          for (const each of narrowed) {
            if (random.percent(15)) reportedNarrowed += await each.follow(world.send(random), world.send(random));
          }
          if (random.percent(1)) await world.restart(random);
          if (random.percent(2)) await world.prune();
          if (step === lateStep) {
            await late?.commit();
            // The truncation waits for all transactions that have changed a provider.
            if (random.percent(5)) await world.truncate();
          }
        }
        for (let last = 1; last > 0; reported += last)
          last = await mirror.follow(world.send(random), world.send(random));
        await mirror.check(world.send(random));
        for (const each of narrowed) {
          for (let last = 1; last > 0; ) last = await each.follow(world.send(random), world.send(random));
          await each.check(world.send(random));
        }
        anew += mirror.reads - 1;
        narrower += reportedNarrowed;
      }
      t.diagnostic(
        `${reported} changes were reported, ${narrower} to mirrors of a part; everything was read anew ${anew} times`,
      );
      assert.ok(reported > enough, `only ${reported}`);
    } finally {
      await world.close();
    }
  });
}

/** The actions of two services on one database, or of one service on an embedded database. */
async function openWorld(engine: Engine) {
  const database = await freshDatabase(engine);
  const open = () => openServiceOn(database);
  const services: PlacementService[] = [await open(), ...(engine === 'postgresql' ? [await open()] : [])];
  const uuids: string[] = [];
  const consumers: string[] = [];
  const names = { last: 0 };
  const kysely = () => services[0]?.database.kysely;
  const run = async (statement: string): Promise<void> => {
    const db = kysely();
    if (db !== undefined) await sql.raw(statement).execute(db);
  };
  const send = (random: Random): Send => requestsTo(random.pick(services), 'placement 2.7');
  const setUp = requestsTo(services[0] as PlacementService, 'placement 2.7'); // opened above
  await setUp('PUT', '/resource_classes/CUSTOM_NAME_X');
  await setUp('PUT', '/traits/CUSTOM_TRAIT_X');
  const lateHost = '00000000-0000-4000-8000-00000000001a';
  await run(`insert into resource_providers (uuid, name, generation) values ('${lateHost}', 'late', 0)`);

  const writes = writesTo({ send, run, uuids, consumers, names });
  return {
    send,
    anyUuid: (random: Random) => random.pick([lateHost, ...uuids.filter((uuid) => uuid !== 'none')]),
    write: (random: Random) => random.pick(writes)(random),
    truncate: () => run('truncate resource_provider_aggregates'),
    /** A transaction that commits after many others that began later. */
    beginLate: async (random: Random) => {
      const other = await openDatabase(database.settings);
      const begun = Promise.withResolvers<void>();
      const mayEnd = Promise.withResolvers<void>();
      const done = other.kysely.transaction().execute(async (trx) => {
        const total = 1 + random.below(1000);
        await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
            allocation_ratio)
          select id, 0, ${total}, 0, 1, 1, 1, 1 from resource_providers where uuid = ${lateHost}
          on conflict (resource_provider_id, resource_class_id) do update set total = excluded.total`.execute(trx);
        begun.resolve();
        await mayEnd.promise;
      });
      await begun.promise;
      return {
        commit: async () => {
          mayEnd.resolve();
          await done;
          await other.close();
        },
      };
    },
    restart: async (random: Random) => {
      const index = random.below(services.length);
      if (engine === 'embedded') return; // it is in the memory of the process
      await services[index]?.close();
      services[index] = await open();
    },
    prune: async () => {
      const [service] = services;
      if (service !== undefined) await pruneChanges(service.database, await pruneChanges(service.database, undefined));
    },
    close: async () => {
      for (const service of services) await service.close();
      await database.drop();
    },
  };
}

type Ways = {
  readonly send: (random: Random) => Send;
  readonly run: (statement: string) => Promise<void>;
  readonly uuids: string[];
  readonly consumers: string[];
  readonly names: { last: number };
};

const classes = ['VCPU', 'MEMORY_MB', 'DISK_GB'];
const traits = ['HW_CPU_X86_AVX2', 'HW_CPU_X86_VMX', 'STORAGE_DISK_SSD'];
const aggregates = ['00000000-0000-4000-8000-0000000000a1', '00000000-0000-4000-8000-0000000000a2'];

/** The writes. A refused one, such as the deletion of a provider in use, is no change. */
function writesTo({ send, run, uuids, consumers, names }: Ways): readonly ((random: Random) => Promise<unknown>)[] {
  const some = <Item>(random: Random, items: readonly Item[]): Item[] => items.filter(() => random.percent(50));
  const any = (random: Random): string => (uuids.length === 0 ? 'none' : random.pick(uuids));
  const name = () => {
    names.last += 1;
    return `p${names.last}`;
  };
  const generationOf = async (random: Random, uuid: string) =>
    at((await send(random)('GET', `/resource_providers/${uuid}`)).json, 'generation');
  const put = async (random: Random, part: string, body: object) => {
    const uuid = any(random);
    const generation = await generationOf(random, uuid);
    await send(random)('PUT', `/resource_providers/${uuid}/${part}`, {
      resource_provider_generation: generation,
      ...body,
    });
  };
  const create = async (random: Random, uuid: string) => {
    const parent = uuids.length > 0 && random.percent(40) ? { parent_provider_uuid: any(random) } : {};
    await send(random)('POST', '/resource_providers', { uuid, name: name(), ...parent });
    if (!uuids.includes(uuid)) uuids.push(uuid);
  };
  return [
    (random) => create(random, randomUuid(random)),
    (random) => create(random, any(random)),
    (random) => send(random)('DELETE', `/resource_providers/${any(random)}`),
    async (random) => {
      const uuid = any(random);
      await send(random)('DELETE', `/resource_providers/${uuid}`);
      if (uuid !== 'none') await create(random, uuid);
    },
    (random) =>
      put(random, 'inventories', {
        inventories: Object.fromEntries(some(random, classes).map((each) => [each, { total: 1 + random.below(100) }])),
      }),
    async (random) => {
      const body = {
        resource_provider_generation: await generationOf(random, uuids[0] ?? 'none'),
        total: 1 + random.below(100),
      };
      await send(random)('PUT', `/resource_providers/${uuids[0] ?? 'none'}/inventories/VCPU`, body);
    },
    (random) => put(random, 'traits', { traits: some(random, traits) }),
    (random) => put(random, 'aggregates', { aggregates: some(random, aggregates) }),
    (random) => send(random)('PUT', `/resource_providers/${any(random)}`, { name: name() }),
    (random) =>
      send(random)('PUT', `/resource_providers/${any(random)}`, {
        name: name(),
        parent_provider_uuid: random.percent(50) ? any(random) : null,
      }),
    async (random) => {
      const consumer = randomUuid(random);
      const claim = newClaim({ [any(random)]: { [random.pick(classes)]: 1 } });
      if ((await send(random)('PUT', `/allocations/${consumer}`, claim)).status === 204) consumers.push(consumer);
    },
    (random) =>
      consumers.length === 0 ? Promise.resolve() : send(random)('DELETE', `/allocations/${random.pick(consumers)}`),
    // By SQL, which raises no generation.
    (random) => run(`update inventories set total = total + 1 where resource_provider_id in (${idOf(any(random))})`),
    (random) => run(`delete from resource_provider_traits where resource_provider_id in (${idOf(any(random))})`),
    (random) =>
      run(`insert into resource_provider_traits (resource_provider_id, trait_id)
        select p.id, t.id from resource_providers p, traits t where p.uuid = '${any(random)}' and t.name = 'HW_GPU_API_VULKAN'
        on conflict do nothing`),
    (random) => run(`delete from resource_provider_aggregates where resource_provider_id in (${idOf(any(random))})`),
    (random) => run(`update resource_providers set name = '${name()}' where uuid = '${any(random)}'`),
    (random) => run(`delete from allocations where resource_provider_id in (${idOf(any(random))})`),
    (random) => run(`update allocations set used = used + 1 where resource_provider_id in (${idOf(any(random))})`),
    // The root in the rows below is not corrected; the service finds it by the parents.
    (random) =>
      run(
        `update resource_providers p set parent_provider_id = null, root_provider_id = null where uuid = '${any(random)}'`,
      ),
    async (random) => {
      const index = random.below(uuids.length + 1);
      const old = uuids[index];
      if (old === undefined) return;
      const uuid = randomUuid(random);
      await run(`update resource_providers set uuid = '${uuid}' where uuid = '${old}'`);
      uuids[index] = uuid;
    },
    (random) =>
      run(`update resource_classes set name = 'CUSTOM_NAME_${random.below(1000)}' where name like 'CUSTOM_NAME_%'`),
    (random) =>
      run(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
          allocation_ratio)
        select p.id, c.id, 5, 0, 1, 1, 1, 1 from resource_providers p, resource_classes c
        where p.uuid = '${any(random)}' and c.name like 'CUSTOM_NAME_%' on conflict do nothing`),
    (random) =>
      run(`update inventories i set resource_class_id = 3 where resource_class_id = 2 and resource_provider_id in (${idOf(any(random))})
        and not exists (select from inventories o where o.resource_provider_id = i.resource_provider_id and o.resource_class_id = 3)`),
    (random) => run(`update traits set name = 'CUSTOM_TRAIT_${random.below(1000)}' where name like 'CUSTOM_TRAIT_%'`),
    (random) =>
      run(`insert into resource_provider_traits (resource_provider_id, trait_id)
        select p.id, t.id from resource_providers p, traits t where p.uuid = '${any(random)}' and t.name like 'CUSTOM_TRAIT_%'
        on conflict do nothing`),
  ];
}

const idOf = (uuid: string): string => `select id from resource_providers where uuid = '${uuid}'`;
