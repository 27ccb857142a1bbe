/**
 * A mirror of consumers that is updated by GET /changes alone equals the truth, after random writes by two services and by other programs.
 * `HISTORIES=1000` runs more of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { switchHistoryOn } from '../../db/statements/usage_history.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { type Actor, makeOwners, step } from '../history/steps.ts';
import { makeHosts, run, switchOff, switchOn, takeInAll, type World } from '../history/world.ts';
import { type Random, randomFrom, randomUuid, seedFor } from '../races/random.ts';
import { type Engine, engines, freshDatabase, runsOn } from '../support/engines.ts';
import { accepted, at, makeProvider, requestsTo } from '../support/requests.ts';
import { openServiceOn, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { openConsumerMirror } from './consumer_mirror.ts';
import { followFrom } from './follow.ts';

const historiesOf = (engine: Engine) => Number(process.env.HISTORIES ?? runsOn(engine, 10));
const stepsOfEach = 40;

for (const engine of engines) {
  test(`a mirror of consumers that follows changes equals the database, on ${engine}`, async (t) => {
    const random = randomFrom(seedFor(t));
    const open = await openWorld(engine);
    const histories = historiesOf(engine);
    let reported = 0;
    let anew = 0;
    try {
      for (let history = 0; history < histories; history += 1) {
        const writers = random.percent(50) ? 1 : 3;
        const ends = openEnds(open.world());
        const mirror = await openConsumerMirror(open.send(random), (consumer, ended) => {
          if (writers === 1) ends.check(consumer, ended);
        });
        const late = engine === 'postgresql' ? await open.beginLate() : undefined;
        const lateStep = random.below(stepsOfEach);
        let left = stepsOfEach;
        const write = async (own: Random): Promise<void> => {
          const actor = open.actor(own);
          while (left > 0) {
            left -= 1;
            const name = await step(actor);
            if (writers === 1) await ends.note(name);
            if (left > 0 && writers === 1 && own.percent(25)) {
              reported += await mirror.follow(open.send(own), open.send(own));
            }
            if (stepsOfEach - left === lateStep) await late?.commit();
          }
        };
        const writing = Promise.all(Array.from({ length: writers }, () => write(random.fork())));
        writing.catch(() => {}); // it is awaited below
        const following = random.fork();
        while (left > 0 && writers > 1) reported += await mirror.follow(open.send(following), open.send(following));
        await writing;
        await late?.commit();
        if (random.percent(10)) await open.restart(random);
        if (random.percent(10)) await open.prune();
        if (random.percent(10)) await open.switch(random);
        for (let last = 1; last > 0; reported += last) last = await mirror.follow(open.send(random), open.send(random));
        await mirror.check(open.send(random), (uuid) => uuid);
        anew += mirror.reads - 1;
      }
      t.diagnostic(`${reported} consumers were reported; everything was read anew ${anew} times`);
      assert.ok(reported > histories * 5, `only ${reported}`);
    } finally {
      await open.close();
    }
  });
}

/** The actions of two services on one database, or of one service on an embedded database. */
async function openWorld(engine: Engine) {
  const database = await freshDatabase(engine);
  const open = () => openServiceOn(database, { history: { enabled: true } });
  const services: PlacementService[] = [await open(), ...(engine === 'postgresql' ? [await open()] : [])];
  const first = (): PlacementService => services[0] as PlacementService; // opened above
  const world = (): World => ({ send: requestsTo(first(), 'placement 2.6'), database: first().database });
  await makeHosts(world().send);
  await makeOwners(world());
  const random = randomFrom(7);
  const uuids = (count: number) => Array.from({ length: count }, () => randomUuid(random));
  const [shared, unrecorded] = [uuids(4), uuids(2)];
  return {
    world,
    send: (own: Random) => requestsTo(own.pick(services), 'placement 2.9'),
    actor: (own: Random): Actor => ({ world: world(), random: own, shared, own: uuids(1), unrecorded }),
    /** A transaction that commits after many others that began later. */
    beginLate: async () => {
      const other = await openDatabase(database.settings);
      const mayEnd = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const done = other.kysely.transaction().execute(async (trx) => {
        await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
          select id, 0, ${randomUuid(random)}, 1 from resource_providers limit 1`.execute(trx);
        begun.resolve();
        await mayEnd.promise;
      });
      await begun.promise;
      let hasEnded = false;
      return {
        commit: async () => {
          if (hasEnded) return;
          hasEnded = true;
          mayEnd.resolve();
          await done;
          await other.close();
        },
      };
    },
    restart: async (own: Random) => {
      const index = own.below(services.length);
      if (engine === 'embedded') return; // it is in the memory of the process
      await services[index]?.close();
      services[index] = await open();
    },
    prune: async () => {
      await pruneChanges(first().database, await pruneChanges(first().database, undefined));
    },
    /** The history is switched off, consumers change, and it is switched on again. */
    switch: async (own: Random) => {
      await switchOff(world());
      const actor: Actor = { world: world(), random: own, shared, own: uuids(1), unrecorded };
      for (let count = 0; count < 5; count += 1) await step(actor);
      await switchOn(world());
    },
    close: async () => {
      for (const service of services) await service.close();
      await database.drop();
    },
  };
}

/** A second bookkeeping of why consumers went, for histories of one writer. */
function openEnds(world: World) {
  let held = new Set<string>();
  const ended = new Map<string, string>();
  return {
    /** Looks at what is held after a step. */
    note: async (name: string): Promise<void> => {
      const rows = await run(world, sql<{ readonly id: string }>`select distinct consumer_id as id from allocations`);
      const present = new Set(rows.map(({ id }) => id));
      for (const id of held) if (!present.has(id)) ended.set(id, name === 'term' ? 'term' : 'released');
      for (const id of present) ended.delete(id);
      held = present;
    },
    /** Compares the reports about a consumer. A consumer that was created and removed in one step is not known here. */
    check: (consumer: string, why: unknown): void => {
      assert.ok(!held.has(consumer), `${consumer} is not gone`);
      if (ended.has(consumer)) assert.equal(why, ended.get(consumer), consumer);
    },
  };
}

for (const engine of engines) {
  test(`created, changed and deleted consumers are reported if the client requests consumers, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.9');
      const world = { send, database: service.database };
      await makeHosts(send);
      const refused = await send('GET', '/changes?parts=usages,consumers');
      assert.equal(refused.status, 400);
      assert.match(String(at(refused.json, 'errors', 0, 'detail')), /'consumers' in 'parts'.*off.*usages,consumers/);
      assert.equal((await requestsTo(service, 'placement 2.8')('GET', '/changes?parts=consumers')).status, 400);
      await switchHistoryOn(world.database);
      const before = await followFrom(send);
      await takeInAll(world);
      const [all, feed] = [await followFrom(send), await followFrom(send, 'consumers')];
      const consumer = randomUuid(randomFrom(1));
      const owner = { project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE' };
      const claim = (body: object) =>
        send('PUT', `/allocations/${consumer}`, {
          allocations: { '00000000-0000-4000-8000-000000000001': { resources: { VCPU: 1 } } },
          ...owner,
          ...body,
        });
      accepted(await claim({ consumer_generation: null }));
      assert.deepEqual(await feed(), [{ consumer }]);
      accepted(await send('PUT', `/consumers/${consumer}`, { ...owner, project_id: 'q', consumer_generation: 1 }));
      assert.deepEqual(await feed(), [{ consumer }], 'another owner');
      accepted(
        await send('PUT', `/consumers/${consumer}`, { ...owner, project_id: 'q', consumer_generation: 2, name: 'web' }),
      );
      assert.deepEqual(await feed(), [{ consumer }], 'another name');
      accepted(await send('DELETE', `/allocations/${consumer}`));
      assert.deepEqual(await feed(), [{ consumer, gone: true, ended: 'released' }]);
      assert.deepEqual(await feed(), []);
      accepted(await claim({ consumer_generation: null, expires_in: 600 }));
      await run(world, sql`update consumer_terms set expires_at = now()`);
      await removeEnded(world.database, firstPosition, 10);
      await run(
        world,
        sql`insert into consumers (uuid, project_id, user_id) select ${consumer}, p.id, u.id from projects p, users u limit 1`,
      );
      await run(world, sql`update consumers set project_id = (select max(id) from projects) where uuid = ${consumer}`);
      await run(world, sql`insert into consumer_names select id, 'web' from consumers where uuid = ${consumer}`);
      assert.deepEqual(
        await feed(),
        [{ consumer, gone: true, ended: 'term' }],
        'its record was made anew, without allocations',
      );
      await run(world, sql`update consumers set project_id = (select min(id) from projects) where uuid = ${consumer}`);
      await run(world, sql`update consumer_names set name = 'db'`);
      assert.deepEqual(await feed(), [], 'its record was written, without allocations');
      const others = (await all()) as readonly object[]; // as openapi-2.yaml says
      assert.ok(others.length > 0 && others.every((each) => !('consumer' in each)), 'a client that did not ask');
      // A statement that changes very many.
      await run(
        world,
        sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
          select min(id), 0, 'many' || n, 1 from resource_providers, generate_series(1, 2001) as n group by n`,
      );
      await feed.isExpired();
      const [anew, usages] = [await followFrom(send, 'consumers'), await followFrom(send, 'usages')];
      await switchOff(world, 100_000);
      assert.equal((await send('GET', `/changes?since=${anew.token()}&parts=consumers`)).status, 400);
      await switchHistoryOn(world.database);
      await anew.isExpired();
      assert.deepEqual(await usages(), [], 'a client that did not ask');
      const query = `/changes?since=${before.token()}&parts=consumers`;
      assert.equal((await send('GET', query)).status, 410, 'a token of another question');
    });
  });
}

test('without the history a client without a token is refused, and clients that follow learn that it is off: postgresql', async () => {
  await withTestService('postgresql', {}, async (service) => {
    const send = requestsTo(service, 'placement 2.9');
    const world = { send, database: service.database };
    for (let round = 0; round < 5; round += 1) {
      await switchHistoryOn(world.database);
      const tokens: string[] = [];
      let isOver = false;
      const asking = Array.from({ length: 8 }, async () => {
        while (!isOver) {
          const { status, json } = await send('GET', '/changes?parts=consumers');
          if (status === 200) tokens.push(String(at(json, 'next')));
          else assert.equal(status, 400);
        }
      });
      await until('the first client has a token', async () => tokens.length > 0);
      await switchOff(world);
      isOver = true;
      await Promise.all(asking);
      await switchHistoryOn(world.database);
      const reported = await Promise.all(tokens.map((token) => send('GET', `/changes?parts=consumers&since=${token}`)));
      assert.deepEqual([...new Set(reported.map(({ status }) => status))], [410]);
      await switchOff(world);
    }
  });
});

test('a client that requests only consumers gets a deletion, also from a process that reads it from the log', async () => {
  const database = await freshDatabase('postgresql');
  const options = { history: { enabled: true, keep: 86_400 } };
  const one = await openServiceOn(database, options);
  const opened = [one];
  try {
    const send = requestsTo(one, 'placement 2.9');
    const host = '10000000-0000-4000-8000-000000000001';
    await makeProvider(send, host, { VCPU: { total: 1 } });
    const begun = String(at(accepted(await send('GET', '/changes?parts=consumers')).json, 'next'));
    const since = String(at(accepted(await send('GET', `/changes?parts=consumers&since=${begun}`)).json, 'next'));
    accepted(await send('DELETE', `/resource_providers/${host}`));
    const other = await openServiceOn(database, options);
    opened.push(other);
    for (const service of opened) {
      const { json } = await requestsTo(service, 'placement 2.9')('GET', `/changes?parts=consumers&since=${since}`);
      assert.deepEqual(at(json, 'changes'), [{ resource_provider: host, deleted: true }]);
    }
  } finally {
    for (const service of opened) await service.close();
    await database.drop();
  }
});
