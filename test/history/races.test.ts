/* Several writers of the same consumers, or of old records: what is recorded, and which writer waits. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type RawBuilder, sql } from 'kysely';
import { isLostRace } from '../../db/engine/failures.ts';
import { assignOwners, pruneUsageRecords, switchHistoryOn } from '../../db/statements/usage_history.ts';
import { accepted } from '../support/requests.ts';
import {
  checkHistory,
  claim,
  clockTick,
  differences,
  host1,
  inserted,
  recordLines,
  run,
  switchOn,
  together,
  type World,
  withWorld,
} from './world.ts';

/** Runs statements of a program, and one of another program that waits for them. */
const oneAfterTheOther = (world: World, first: readonly RawBuilder<unknown>[], second: RawBuilder<unknown>) =>
  world.database.kysely.connection().execute((one) =>
    world.database.kysely.connection().execute(async (other) => {
      await sql`begin`.execute(one);
      for (const statement of first) await statement.execute(one);
      await sql`begin`.execute(other);
      const waits = second.execute(other);
      await new Promise((resolve) => setTimeout(resolve, 200));
      await sql`commit`.execute(one);
      await waits;
      await sql`commit`.execute(other);
    }),
  );

test('a deletion that waited for another writer leaves what the other writer has written: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const consumer = randomUUID(); // without a record, so that no writer locks it
    await switchOn(world);
    await together(world, inserted(consumer, { [host1]: { VCPU: 1 } }));
    const rewritten = inserted(consumer, { [host1]: { VCPU: 2 } });
    await oneAfterTheOther(world, rewritten, sql`delete from allocations where consumer_id = ${consumer}`);
    assert.deepEqual(await differences(world), []);
  });
});

test('a deletion of what a consumer without a record holds since before the history was on is not recorded again: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const consumer = randomUUID();
    const [insert = sql``] = inserted(consumer, { [host1]: { VCPU: 1 } });
    await together(world, [insert]);
    await switchHistoryOn(world.database);
    const deletion = sql`delete from allocations where consumer_id = ${consumer}`;
    await oneAfterTheOther(world, [deletion], insert);
    assert.deepEqual(await recordLines(world, consumer), ['1 VCPU of 1 by : open']);
  });
});

test('the end of all that a consumer without a record held is logged before the history is complete: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const consumer = randomUUID();
    await together(world, inserted(consumer, { [host1]: { VCPU: 1 } }));
    await switchHistoryOn(world.database);
    await together(world, [sql`delete from allocations where consumer_id = ${consumer}`]);
    const logged = await run(world, sql`select from provider_changes where ${consumer} = any(consumer_ids)`);
    assert.equal(logged.length, 1);
  });
});

test('two programs that write a consumer without a record at once begin one record: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const consumer = randomUUID();
    await switchOn(world);
    const [insert = sql``] = inserted(consumer, { [host1]: { VCPU: 1 } });
    await oneAfterTheOther(world, [insert], insert);
    assert.deepEqual(await recordLines(world, consumer), ['1 VCPU of 1 by : rewritten', '2 VCPU of 1 by : open']);
    await checkHistory(world);
  });
});

test('a record that was begun while its consumer was made by another program gets its owner: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const { kysely } = world.database;
    const [consumer, first] = [randomUUID(), randomUUID()];
    await switchOn(world);
    await claim(world, first, { [host1]: { VCPU: 1 } });
    await kysely.transaction().execute(async (writing) => {
      for (const statement of inserted(consumer, { [host1]: { VCPU: 2 } })) await statement.execute(writing);
      await sql`insert into consumers (uuid, project_id, user_id, consumer_type_id, generation)
        select ${consumer}, project_id, user_id, consumer_type_id, 0 from consumers where uuid = ${first}`.execute(
        kysely,
      );
    });
    assert.equal((await differences(world)).length, 2);
    assert.deepEqual([await assignOwners(world.database, 10), await assignOwners(world.database, 10)], [1, 0]);
    assert.deepEqual(await differences(world), []);
    assert.deepEqual(await recordLines(world, consumer), [
      '2 VCPU of 1 by : owner',
      '2 VCPU of 1 by p/u/INSTANCE: open',
    ]);
  });
});

test('a deletion of a consumer without a record sees the record that another transaction begins meanwhile: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const { kysely } = world.database;
    const consumer = randomUUID();
    await switchOn(world);
    const [insert = sql``] = inserted(consumer, { [host1]: { VCPU: 1 } });
    const write = async (statement: RawBuilder<unknown>) => {
      for (let count = 0; count < 400; count += 1) {
        await statement.execute(kysely).catch((error: unknown) => {
          if (!isLostRace(error)) throw error;
        });
      }
    };
    const one = sql`delete from allocations where id = (select id from allocations where consumer_id = ${consumer} limit 1)`;
    await Promise.all([write(insert), write(insert), write(one), write(one)]);
    assert.deepEqual(await differences(world), []);
  });
});

test('no claim waits for the removal of old records, nor the removal for claims: postgresql', async () => {
  await withWorld('postgresql', async (world) => {
    const { kysely } = world.database;
    const [consumer, other] = [randomUUID(), randomUUID()];
    await switchOn(world);
    for (const amount of [1, 2, 3]) await claim(world, consumer, { [host1]: { VCPU: amount } });
    await claim(world, other, { [host1]: { VCPU: 1 } });
    const prune = (database: typeof kysely) => pruneUsageRecords({ kysely: database }, { keepSeconds: 0, limit: 1 });
    await clockTick();
    await kysely.transaction().execute(async (removing) => {
      assert.equal(await prune(removing), 1);
      await claim(world, consumer, { [host1]: { VCPU: 4 } });
      accepted(await world.send('DELETE', `/allocations/${other}`));
      await kysely.transaction().execute(async (claiming) => {
        await sql`delete from allocations where consumer_id = ${consumer}`.execute(claiming);
        assert.equal(await prune(kysely), 1);
      });
    });
    assert.deepEqual(await differences(world), []);
  });
});
