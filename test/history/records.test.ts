/** The records of what consumers held, by all programs that write. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type RawBuilder, sql } from 'kysely';
import { raiseSequences } from '../../db/schema/id_sequences.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import {
  assignOwners,
  closeRecords,
  pruneUsageRecords,
  switchHistoryOff,
  switchHistoryOn,
  takeInHeld,
} from '../../db/statements/usage_history.ts';
import { engines } from '../support/engines.ts';
import { accepted } from '../support/requests.ts';
import {
  type ClaimedAmounts,
  checkHistory,
  claim,
  clockOf,
  host1,
  host2,
  inserted,
  recordLines,
  recordsOf,
  run,
  switchOff,
  switchOn,
  takeInAll,
  together,
  type World,
  withWorld,
} from './world.ts';

/** As OpenStack Placement replaces allocations. */
const replaced = (consumer: string, amounts: ClaimedAmounts): readonly RawBuilder<unknown>[] => [
  sql`delete from allocations where consumer_id = ${consumer}`,
  ...inserted(consumer, amounts),
  sql`update consumers set generation = generation + 1 where uuid = ${consumer}`,
];

/** Each with the history on and a consumer that has 1 VCPU of the first host. */
const cases: Readonly<Record<string, (world: World, consumer: string) => Promise<readonly string[]>>> = {
  'nothing more': async () => ['1 VCPU of 1 by p/u/INSTANCE: open'],
  'an unchanged rewrite leaves the record untouched': async (world, consumer) => {
    const before = await recordsOf(world);
    await claim(world, consumer, { [host1]: { VCPU: 1 } });
    assert.deepEqual(await recordsOf(world), before);
    return ['1 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'another amount, and a class more': async (world, consumer) => {
    await claim(world, consumer, { [host1]: { VCPU: 2, DISK_GB: 5 } });
    return [
      '1 VCPU of 1 by p/u/INSTANCE: rewritten',
      '5 DISK_GB of 1 by p/u/INSTANCE: open',
      '2 VCPU of 1 by p/u/INSTANCE: open',
    ];
  },
  'a move': async (world, consumer) => {
    await claim(world, consumer, { [host2]: { VCPU: 1 } });
    const [from, to] = await recordsOf(world);
    assert.equal(from?.until, to?.began);
    return ['1 VCPU of 1 by p/u/INSTANCE: moved', '1 VCPU of 2 by p/u/INSTANCE: open'];
  },
  'another project by a claim': async (world, consumer) => {
    await claim(world, consumer, { [host1]: { VCPU: 1 } }, { project_id: 'q' });
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 1 by q/u/INSTANCE: open'];
  },
  'another user and type, without a claim': async (world, consumer) => {
    const change = { project_id: 'p', user_id: 'v', consumer_type: 'X', consumer_generation: 1 };
    accepted(await world.send('PUT', `/consumers/${consumer}`, change));
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 1 by p/v/X: open'];
  },
  'the end of a term': async (world, consumer) => {
    await run(world, sql`insert into consumer_terms select id, generation, now() from consumers`);
    await removeEnded(world.database, firstPosition, 10);
    assert.deepEqual(await run(world, sql`select from consumers where uuid = ${consumer}`), []);
    return ['1 VCPU of 1 by p/u/INSTANCE: term'];
  },
  'a reshape': async (world, consumer) => {
    const { json } = await world.send('GET', `/allocations/${consumer}`);
    const inventories = await Promise.all(
      [host1, host2].map(async (host) => {
        const { json } = await world.send('GET', `/resource_providers/${host}/inventories`);
        return [host, json] as const;
      }),
    );
    const allocations = { [host2]: { resources: { VCPU: 1 } } };
    accepted(
      await world.send('POST', '/reshaper', {
        inventories: Object.fromEntries(inventories),
        allocations: { [consumer]: { ...(json as object), allocations } }, // the body of an answer is an object
      }),
    );
    return ['1 VCPU of 1 by p/u/INSTANCE: moved', '1 VCPU of 2 by p/u/INSTANCE: open'];
  },
  'a release, and a claim again': async (world, consumer) => {
    accepted(await world.send('DELETE', `/allocations/${consumer}`));
    await claim(world, consumer, { [host1]: { VCPU: 1 } });
    return ['1 VCPU of 1 by p/u/INSTANCE: released', '1 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'the same content again by another program': async (world, consumer) => {
    const before = await recordsOf(world);
    await together(world, replaced(consumer, { [host1]: { VCPU: 1 } }));
    assert.deepEqual(await recordsOf(world), before);
    await together(world, replaced(consumer, { [host1]: { VCPU: 1 } }));
    assert.deepEqual(await recordsOf(world), before);
    return ['1 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'other content by another program': async (world, consumer) => {
    await together(world, replaced(consumer, { [host2]: { VCPU: 1 }, [host1]: { VCPU: 2, DISK_GB: 1 } }));
    const [first, ...more] = await recordsOf(world);
    assert.deepEqual(
      more.filter(({ className }) => className === 'VCPU').map(({ began }) => began),
      [first?.until, first?.until],
    );
    return [
      '1 VCPU of 1 by p/u/INSTANCE: rewritten',
      '2 VCPU of 1 by p/u/INSTANCE: open',
      '1 VCPU of 2 by p/u/INSTANCE: open',
      '1 DISK_GB of 1 by p/u/INSTANCE: open',
    ];
  },
  'another host and owner by another program, which writes the owner first': async (world, consumer) => {
    await together(world, [
      sql`insert into projects (external_id) values ('q') on conflict do nothing`,
      sql`update consumers set project_id = (select id from projects where external_id = 'q')`,
      ...replaced(consumer, { [host2]: { VCPU: 1 } }),
    ]);
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 2 by q/u/INSTANCE: open'];
  },
  'a move by another program, which inserts first': async (world, consumer) => {
    await together(world, [
      ...inserted(consumer, { [host2]: { VCPU: 1 } }),
      sql`delete from allocations a using resource_providers p where p.id = a.resource_provider_id and p.uuid = ${host1}`,
    ]);
    const [from, to] = await recordsOf(world);
    assert.equal(from?.until, to?.began);
    return ['1 VCPU of 1 by p/u/INSTANCE: moved', '1 VCPU of 2 by p/u/INSTANCE: open'];
  },
  'what a transaction began and ended, or a savepoint undid, leaves nothing': async (world, consumer) => {
    const before = await recordsOf(world);
    const other = randomUUID();
    await together(world, [
      ...inserted(consumer, { [host2]: { VCPU: 1 } }),
      ...inserted(other, { [host2]: { VCPU: 1 } }),
      sql`delete from allocations where consumer_id = ${consumer}`,
      sql`savepoint one`,
      ...inserted(consumer, { [host2]: { VCPU: 3 } }),
      sql`rollback to one`,
      sql`savepoint two`,
      ...inserted(consumer, { [host1]: { VCPU: 1 } }),
      sql`delete from allocations where consumer_id = ${other}`,
    ]);
    assert.deepEqual(await recordsOf(world), before);
    return ['1 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'a transaction that is undone': async (world, consumer) => {
    const undone = together(world, [
      ...replaced(consumer, { [host2]: { VCPU: 1 } }),
      sql`insert into consumers select * from consumers`,
    ]);
    await assert.rejects(undone, /uniq_consumers|consumers_pkey/);
    return ['1 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'an UPDATE of allocations': async (world, consumer) => {
    await run(world, sql`update allocations set used = used + 1`);
    await run(
      world,
      sql`update allocations set resource_provider_id = (select id from resource_providers where uuid = ${host2})`,
    );
    assert.deepEqual(await recordLines(world, consumer), [
      '1 VCPU of 1 by p/u/INSTANCE: rewritten',
      '2 VCPU of 1 by p/u/INSTANCE: moved',
      '2 VCPU of 2 by p/u/INSTANCE: open',
    ]);
    const other = randomUUID();
    await run(world, sql`update allocations set consumer_id = ${other}`);
    assert.deepEqual(await recordLines(world, other), ['2 VCPU of 2 by : open']);
    return [
      '1 VCPU of 1 by p/u/INSTANCE: rewritten',
      '2 VCPU of 1 by p/u/INSTANCE: moved',
      '2 VCPU of 2 by p/u/INSTANCE: released',
    ];
  },
  'several allocations of one class at one provider count as one': async (world, consumer) => {
    await together(world, inserted(consumer, { [host1]: { VCPU: 3 } }));
    return ['1 VCPU of 1 by p/u/INSTANCE: rewritten', '4 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'another UUID of a consumer': async (world) => {
    await run(world, sql`update consumers set uuid = 'other'`);
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 1 by : open'];
  },
  'TRUNCATE of allocations': async (world) => {
    await run(world, sql`truncate allocations`);
    return ['1 VCPU of 1 by p/u/INSTANCE: released'];
  },
  'TRUNCATE of consumers': async (world) => {
    await run(world, sql`truncate consumers`);
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 1 by : open'];
  },
  'a consumer that is deleted under its allocations, and made again': async (world, consumer) => {
    await run(world, sql`delete from consumers`);
    assert.deepEqual(await recordLines(world, consumer), [
      '1 VCPU of 1 by p/u/INSTANCE: owner',
      '1 VCPU of 1 by : open',
    ]);
    const change = { project_id: 'p', user_id: 'u', consumer_type: 'X', consumer_generation: null };
    accepted(await world.send('PUT', `/consumers/${consumer}`, change));
    return ['1 VCPU of 1 by p/u/INSTANCE: owner', '1 VCPU of 1 by : owner', '1 VCPU of 1 by p/u/X: open'];
  },
  'names, also of what is renamed': async (world, consumer) => {
    const named = async () => (await recordsOf(world)).map(({ name }) => name);
    await run(world, sql`insert into consumer_names select id, 'web' from consumers`);
    assert.deepEqual(await named(), ['web']);
    await checkHistory(world);
    await claim(world, consumer, { [host2]: { VCPU: 1 } });
    await run(world, sql`update consumer_names set name = 'www'`);
    assert.deepEqual(await named(), ['web', 'www']);
    await run(world, sql`update resource_providers set name = 'renamed' where uuid = ${host2}`);
    accepted(await world.send('DELETE', `/allocations/${consumer}`));
    const [last] = await run(world, sql`select provider_name from usage_records where name = 'www'`);
    assert.deepEqual(last, { provider_name: 'renamed' });
    await claim(world, consumer, { [host2]: { VCPU: 1 } });
    await run(world, sql`insert into consumer_names select id, 'x' from consumers`);
    await run(world, sql`delete from consumer_names where name = 'x'`);
    assert.deepEqual(await named(), ['web', 'www', null]);
    return [
      '1 VCPU of 1 by p/u/INSTANCE: moved',
      '1 VCPU of 2 by p/u/INSTANCE: released',
      '1 VCPU of 2 by p/u/INSTANCE: open',
    ];
  },
  'the history switched off, and on again': async (world, consumer) => {
    const { database } = world;
    await claim(world, randomUUID(), { [host1]: { DISK_GB: 1 } });
    assert.deepEqual([await switchHistoryOff(database), await switchHistoryOff(database)], [true, false]);
    const switched = await clockOf(world);
    await claim(world, consumer, { [host1]: { VCPU: 2 } });
    assert.deepEqual([await switchHistoryOn(database), await closeRecords(database, 1)], [false, true]);
    await claim(world, consumer, { [host1]: { VCPU: 3 } });
    assert.deepEqual([await closeRecords(database, 2), await closeRecords(database, 2)], [true, false]);
    const ends = (await recordsOf(world)).map(({ until, ended }) => [until !== null && until <= switched, ended]);
    assert.deepEqual(ends, [
      [true, null],
      [true, null],
    ]);
    await claim(world, consumer, { [host1]: { VCPU: 2 } });
    assert.equal((await recordsOf(world)).length, 2);
    assert.equal(await switchHistoryOn(database), true);
    await takeInAll(world);
    return ['1 VCPU of 1 by p/u/INSTANCE: null', '2 VCPU of 1 by p/u/INSTANCE: open'];
  },
  'what was not recorded is recorded with the next write, also where a part of it is deleted': async (
    world,
    consumer,
  ) => {
    await claim(world, consumer, { [host1]: { VCPU: 1, DISK_GB: 2 } });
    await run(world, sql`delete from open_usage_records`);
    await run(world, sql`delete from allocations where used = 1`);
    return ['2 DISK_GB of 1 by p/u/INSTANCE: open'];
  },
  'records that were copied without their sequence': async (world, consumer) => {
    await claim(world, consumer, { [host1]: { VCPU: 2 } });
    await run(world, sql`alter sequence usage_record_id_seq restart`);
    await raiseSequences(world.database);
    await claim(world, consumer, { [host1]: { VCPU: 3 } });
    const ids = (await recordsOf(world)).map(({ id }) => Number(id));
    assert.deepEqual(
      ids.toSorted((a, b) => a - b),
      ids,
    );
    return [
      '1 VCPU of 1 by p/u/INSTANCE: rewritten',
      '2 VCPU of 1 by p/u/INSTANCE: rewritten',
      '3 VCPU of 1 by p/u/INSTANCE: open',
    ];
  },
  'records that ended long ago are deleted, some at a time': async (world, consumer) => {
    for (let amount = 2; amount < 6; amount += 1) await claim(world, consumer, { [host1]: { VCPU: amount } });
    await run(
      world,
      sql`update usage_records set began_at = began_at - interval '1 day', ended_at = ended_at - interval '1 day' where amount < 4`,
    );
    const prune = () => pruneUsageRecords(world.database, { keepSeconds: 3600, limit: 2 });
    assert.deepEqual([await prune(), await prune(), await prune()], [2, 1, 0]);
    return ['4 VCPU of 1 by p/u/INSTANCE: rewritten', '5 VCPU of 1 by p/u/INSTANCE: open'];
  },
};

for (const engine of engines) {
  test(`records on ${engine}`, async (t) => {
    await withWorld(engine, async (world) => {
      for (const [name, act] of Object.entries(cases)) {
        await t.test(name, async () => {
          const consumer = randomUUID();
          await switchOn(world);
          await claim(world, consumer, { [host1]: { VCPU: 1 } });
          try {
            const expected = await act(world, consumer);
            assert.deepEqual(await recordLines(world, consumer), expected);
          } finally {
            await together(world, [
              sql`delete from allocations`,
              sql`delete from consumers`,
              sql`delete from consumer_names`,
              sql`delete from usage_records`,
            ]);
          }
        });
      }
    });
  });

  test(`on ${engine}, nothing is recorded while the history is off`, async () => {
    await withWorld(engine, async (world) => {
      const consumer = randomUUID();
      await claim(world, consumer, { [host1]: { VCPU: 1 } });
      await claim(world, consumer, { [host2]: { VCPU: 1 } });
      accepted(await world.send('DELETE', `/allocations/${consumer}`));
      assert.equal(await takeInHeld(world.database, undefined, 10), undefined);
      assert.equal(await assignOwners(world.database, 10), 0);
      assert.deepEqual(await recordsOf(world), []);
    });
  });

  test(`on ${engine}, allocations that exist at the switch are recorded, whichever process switches`, async () => {
    await withWorld(engine, async (world) => {
      const { database } = world;
      const consumers = Array.from({ length: 7 }, () => randomUUID()).toSorted();
      for (const consumer of consumers) await claim(world, consumer, { [host1]: { VCPU: 1, DISK_GB: 1 } });
      await together(world, inserted('old', { [host1]: { VCPU: 1 } }));
      assert.deepEqual([await switchHistoryOn(database), await switchHistoryOn(database)], [true, false]);
      const [first = '', , , , , , last = ''] = consumers;
      await claim(world, last, { [host2]: { VCPU: 1 } });
      const position = await takeInHeld(database, undefined, 4);
      assert.deepEqual((await recordLines(world, first)).toSorted(), [
        '1 DISK_GB of 1 by p/u/INSTANCE: open',
        '1 VCPU of 1 by p/u/INSTANCE: open',
      ]);
      await switchOff(world);
      await switchHistoryOn(database);
      const isComplete = async () => (await run(world, sql`select from usage_history where is_complete`)).length === 1;
      // The position was of the former switch.
      const anew = await takeInHeld(database, position, 4);
      assert.ok(anew !== undefined && anew.since !== position?.since);
      assert.equal((await run(world, sql`select distinct consumer_id from open_usage_records`)).length, 2);
      await Promise.all([takeInAll(world, 3), takeInAll(world, 4)]);
      assert.ok(await isComplete());
      assert.equal((await run(world, sql`select from open_usage_records`)).length, 2 * 6 + 1 + 1);
      await checkHistory(world);
    });
  });
}
