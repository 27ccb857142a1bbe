/**
 * Two programs write at once: whatever the order of their statements, all that triggers keep is right in the end. The service is one of
 * them in some pairs, by the statements that it sends.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backfillEtags } from '../../db/online/backfill_etags.ts';
import { meet, pairsOf, type Transactions, upstream, withStage, written } from './meeting.ts';
import { byService, byServiceOfProvider, limiting, otherClassName, sentBy } from './sent_statements.ts';

for (const [about, transactions] of Object.entries(written)) {
  test(`what triggers keep of ${about} is right, in whatever order two programs write`, async () => {
    await withStage(async (stage) => {
      for (const [name, one, other] of pairsOf(transactions)) assert.deepEqual(await meet(stage, one, other), [], name);
    });
  });
}

test('what triggers keep is right, in whatever order OpenStack Placement and the service write', async () => {
  await withStage(async (stage) => {
    for (const [name, one, other] of pairsOf({ ...upstream, ...(await byService(stage.database)) })) {
      assert.deepEqual(await meet(stage, one, other), [], name);
    }
  });
});

test('what triggers keep of a provider is right, in whatever order the service and another program write', async () => {
  await withStage(async (stage) => {
    const { inventories, traits, aggregates, providers } = written;
    const always = {
      'other UUID': providers?.['other UUID of another one'] ?? [],
      'another deletion': providers?.['deletion of another one'] ?? [],
      'a claim': (await byService(stage.database))['a claim'] ?? [],
    };
    const parts: Readonly<Record<string, Transactions | undefined>> = {
      inventories,
      traits,
      aggregates,
      'aggregates at any generation': aggregates,
    };
    for (const [name, one] of Object.entries(await byServiceOfProvider(stage.database))) {
      const others = { ...(parts[name] ?? { ...inventories, ...traits, ...aggregates }), ...always };
      for (const [by, other] of Object.entries(others))
        assert.deepEqual(await meet(stage, one, other), [], `${name} | ${by}`);
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
    const others = { ...written['a consumer'], ...upstream, ...(await byService(stage.database)) };
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
  [
    `create or replace function etag_parts(part text, ids integer[]) returns void language plpgsql as $x$ begin
      update resource_provider_etags set traits = etag_of_traits(resource_provider_id) where resource_provider_id = any(ids);
    end $x$`,
    'traits',
    'one more trait',
    'no trait',
    /: tag of provider 2$/,
  ],
  [
    'drop trigger log_change on placement_aggregates',
    'aggregates',
    'other UUID of the aggregate',
    'other UUID of the aggregate',
    /: log of part 8 of provider 2$/,
  ],
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

test('it is noticed where the service writes a tag without a look at the former one', async () => {
  await withStage(async (stage) => {
    const { inventories = [] } = await byServiceOfProvider(stage.database);
    const mistaken = inventories.map((statement) => {
      if (typeof statement === 'string') return statement;
      return {
        ...statement,
        text: statement.text.replace(/case when coalesce\([\s\S]*?\) then (excluded\.\S+) end/, '$1'),
      };
    });
    assert.notDeepEqual(mistaken, inventories);
    const found = await meet(stage, mistaken, written.inventories?.['one more inventory'] ?? []);
    assert.match(found.join('\n'), /: tag of provider 2$/m);
  });
});
