/**
 * Writes of providers that the fleet shows before it has read them, in any order of events: each write that is done was judged by what the
 * database had, and what is shown is what a load shows, as soon as all is read.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import fc from 'fast-check';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type DoneWrite, type ProviderWrite, writeProviders } from '../../db/statements/providers/provider_write.ts';
import { inventoriesWrite } from '../../src/api/resource_providers/inventories.ts';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { aggregatesTagOf, newProviderTags, traitsTagOf } from '../../src/fleet/model/entity_tags.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { inventoryOf, type Provider } from '../../src/fleet/model/provider.ts';
import { aggregatesTag } from '../../src/placement/entity_tag.ts';
import { claimOn } from '../support/claims.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { formOf } from './fleet_form.ts';
import { openGate } from './held_results.ts';

const names = ['a', 'b', 'c'] as const;
/** The ids of VCPU and of MEMORY_MB. */
const classes = [
  [0, 'VCPU'],
  [1, 'MEMORY_MB'],
] as const;

const write = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('create' as const), below: fc.option(fc.constantFrom(...names)) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('inventories' as const),
      totals: fc.array(fc.option(fc.integer({ min: 1, max: 4 })), { minLength: 2, maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('traits' as const), traits: fc.subarray([0, 1, 2]) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('aggregates' as const, 'last aggregates' as const),
      uuids: fc.subarray(['x', 'y', 'z']),
    }),
  },
);
const step = fc.record({
  name: fc.constantFrom(...names),
  what: fc.oneof(
    { weight: 8, arbitrary: write },
    { weight: 3, arbitrary: fc.constant({ kind: 'claim' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'delete' as const }) },
    { weight: 2, arbitrary: fc.constant({ kind: 'refresh' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'show' as const }) },
  ),
  /** Of a write: by this process and shown at once, later, or around the beginning of a refresh; or by another process. */
  by: fc.oneof(
    { weight: 3, arbitrary: fc.constant('own' as const) },
    { weight: 3, arbitrary: fc.constant('own, during a refresh' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('own, as a refresh begins' as const, 'own, shown later' as const, 'other' as const),
    },
  ),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** So that there is something to write, and each history has a write that loses its guard and a claim that is written. */
const first: readonly Step[] = [
  { name: 'a', what: { kind: 'create', below: null }, by: 'own' },
  { name: 'a', what: { kind: 'inventories', totals: [4, null] }, by: 'own' },
  { name: 'b', what: { kind: 'create', below: 'a' }, by: 'own' },
  { name: 'a', what: { kind: 'claim' }, by: 'own' },
  { name: 'b', what: { kind: 'inventories', totals: [4, null] }, by: 'other' },
  { name: 'b', what: { kind: 'traits', traits: [0] }, by: 'own' },
  { name: 'a', what: { kind: 'refresh' }, by: 'own' },
  { name: 'a', what: { kind: 'traits', traits: [1] }, by: 'own, as a refresh begins' },
];

test('own writes of providers are shown at once, and later writes are judged by them', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    const counts = { shown: 0, done: 0, lost: 0, claimed: 0 };
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps) => {
          await sql`truncate resource_providers, inventories, allocations, consumers, resource_provider_traits,
            resource_provider_aggregates, resource_provider_etags`.execute(database.kysely);
          await follow(database, [...first, ...steps], counts);
        }),
        { numRuns: 30 },
      );
      for (const [what, count] of Object.entries(counts)) assert.ok(count > 2, `${what}: only ${count}`);
    } finally {
      await database.close();
    }
  });
});

async function follow(
  database: Database,
  steps: readonly Step[],
  counts: { shown: number; done: number; lost: number; claimed: number },
): Promise<void> {
  const gate = openGate();
  const keeper = await openFleet({ ...database, kysely: database.kysely.withPlugin(gate.plugin) });
  const claims = openClaims(database, keeper, { conflictRetryCount: 10 });
  const later: DoneWrite[] = [];
  let consumers = 0;
  /** The read that waits for the refresh under way, what the database had at its beginning, and the providers written and shown since. */
  let held: { readonly read: Promise<unknown>; readonly truth: unknown; readonly shown: Set<string> } | undefined;
  const endRefresh = async (): Promise<void> => {
    gate.open();
    if (held === undefined) return;
    assert.deepEqual(await held.read, held.truth, 'a read shows what its refresh has read');
    await nextIteration(); // then own writes that the refresh lacks are shown again
    const now = (await loadFleet(database)).living.fleet;
    for (const name of later.length === 0 ? held.shown : []) {
      assert.deepEqual(contentOf(keeper.known.byUuid.get(name)), contentOf(now.byUuid.get(name)));
    }
    held = undefined;
  };
  /** @param by with a refresh that begins it ends before this returns */
  const showBy = async (by: Step['by'], done: DoneWrite): Promise<boolean> => {
    const refreshed = by === 'own, as a refresh begins' ? keeper.fresh() : undefined;
    const isShown = show(done);
    await refreshed;
    return isShown;
  };
  const show = (done: DoneWrite): boolean => keeper.applyOwnWrite({ xid: done.xid, effects: [], providers: [done] });
  try {
    for (const { name, what, by } of steps) {
      if (by !== 'own, during a refresh' || ['refresh', 'show', 'claim'].includes(what.kind)) await endRefresh();
      if (what.kind === 'refresh') await keeper.fresh();
      else if (what.kind === 'show') for (const done of later.splice(0)) show(done);
      else if (what.kind === 'delete') {
        await remove(database, name);
        held?.shown.delete(name);
      } else if (what.kind === 'claim') {
        consumers += 1;
        if (await isClaimed(() => claims.write(claimOn(name, `consumer ${consumers}`, 1, { knownGeneration: null })))) {
          counts.claimed += 1;
          const inventory = inventoryIn((await loadFleet(database)).living.fleet, name);
          assert.ok(inventory && inventory.used <= inventory.fields.total, `${name}: ${JSON.stringify(inventory)}`);
        }
      } else {
        const truth = (await loadFleet(database)).living.fleet;
        const wanted = by === 'other' ? writeOf(truth, name, what) : judged(keeper, name, what);
        if (wanted === undefined) continue;
        if (by === 'own, during a refresh' && held === undefined) {
          keeper.applyOwnWrite({ xid: '0', effects: [] }); // then the refresh has one statement, and does not check first
          const [read] = await gate.whileClosed(async () => formOf(await keeper.fresh()));
          held = read && { read, truth: formOf(truth), shown: new Set() };
        }
        const seen = contentOf(keeper.known.byUuid.get(name));
        const done = (await writeProviders(database, [wanted])).get(wanted);
        counts[done === undefined ? 'lost' : 'done'] += 1;
        if (done !== undefined && by !== 'other') {
          // The last writer of aggregates wins, whatever it was judged by.
          const isGuarded = what.kind !== 'last aggregates' && by !== 'own, during a refresh';
          if (isGuarded) assert.deepEqual(seen, contentOf(truth.byUuid.get(name)), what.kind);
          if (by === 'own, shown later') later.push(done);
          else if (await showBy(by, done)) {
            counts.shown += 1;
            held?.shown.add(name);
            const now = (await loadFleet(database)).living.fleet;
            const [known, written] = [keeper.known, now].map((fleet) => contentOf(fleet.byUuid.get(name)));
            if (isGuarded) assert.deepEqual(known, written);
            else if (by === 'own') assert.deepEqual(known?.aggregates, written?.aggregates);
          }
        }
      }
    }
    await endRefresh();
    for (const done of later) show(done);
    assert.deepEqual(formOf(await keeper.fresh()), formOf((await loadFleet(database)).living.fleet));
  } finally {
    gate.open(); // a result that is held back would keep the database from closing
  }
}

/** Removes a provider that has neither allocations nor children, as another program does. */
const remove = ({ kysely }: Database, name: string) =>
  sql`
    with gone as materialized (
      select id from resource_providers p where uuid = ${name}
        and not exists (select from allocations where resource_provider_id = p.id)
        and not exists (select from resource_providers c where c.parent_provider_id = p.id)
    ), inventory as (
      delete from inventories where resource_provider_id in (select id from gone)
    ), trait as (
      delete from resource_provider_traits where resource_provider_id in (select id from gone)
    ), member as (
      delete from resource_provider_aggregates where resource_provider_id in (select id from gone)
    )
    delete from resource_providers where id in (select id from gone)`.execute(kysely);

const isClaimed = (claim: () => Promise<unknown>): Promise<boolean> =>
  claim().then(
    () => true,
    (error: unknown) => {
      if (error instanceof ClaimRefused) return false;
      throw error;
    },
  );

const inventoryIn = (fleet: Fleet, uuid: string) => {
  const provider = fleet.byUuid.get(uuid);
  return provider && inventoryOf(provider, 0);
};

/** What a write is judged by, and the usages. */
const contentOf = (provider: Provider | undefined) =>
  provider && {
    generation: provider.generation,
    parent: provider.parent?.uuid,
    inventories: provider.inventories.map(({ fields, used }) => ({ ...fields, used })),
    traits: provider.traitIds,
    aggregates: provider.aggregates.toSorted(),
  };

type Wanted = typeof write extends fc.Arbitrary<infer Value> ? Value : never;

const judged = (keeper: FleetKeeper, name: string, what: Wanted): ProviderWrite | undefined => {
  const wanted = writeOf(keeper.known, name, what);
  return wanted && 'providerId' in wanted ? { ...wanted, judgedOn: keeper.snapshot } : wanted;
};

/** The write of a request, judged by what a fleet shows; undefined where it is refused, or nothing has to change. */
function writeOf(fleet: Fleet, name: string, what: Wanted): ProviderWrite | undefined {
  const provider = fleet.byUuid.get(name);
  if (what.kind === 'create') {
    const parent = what.below === null ? undefined : fleet.byUuid.get(what.below);
    const tags = newProviderTags({ uuid: name, name, parentUuid: parent?.uuid ?? null });
    if (provider !== undefined) return undefined;
    return parent === undefined
      ? { kind: 'root', uuid: name, name, tags }
      : { kind: 'child', uuid: name, name, tags, parent };
  }
  if (provider === undefined) return undefined;
  const { id: providerId, uuid, generation } = provider;
  if (what.kind === 'inventories') {
    const put = classes.flatMap(([classId, className], index) => {
      const total = what.totals[index];
      return typeof total === 'number' ? [{ ...inventory(total), classId, className }] : [];
    });
    const remove = provider.inventories.filter(({ fields }) => !put.some(({ classId }) => classId === fields.classId));
    return remove.some(({ used }) => used > 0) ? undefined : inventoriesWrite(fleet, provider, put, remove);
  }
  if (what.kind === 'traits') {
    const all = [...fleet.traits.byId.values()].slice(0, 3);
    const traits = what.traits.flatMap((index) => all[index] ?? []);
    const present = provider.traitIds.flatMap((id) => fleet.traits.byId.get(id) ?? []);
    const tag = traitsTagOf(
      fleet,
      traits.map(({ id }) => id),
    );
    const tags = { tag, tagBefore: traitsTagOf(fleet, provider.traitIds) };
    return { kind: 'traits', providerId, uuid, generation, traits, present, ...tags };
  }
  const { uuids } = what;
  const wanted = { providerId, uuid, uuids, tag: aggregatesTag(uuids), tagBefore: aggregatesTagOf(provider) };
  if (what.kind === 'last aggregates') return { kind: 'last aggregates', ...wanted };
  return { kind: 'aggregates', generation, present: provider.aggregates, ...wanted };
}

const inventory = (total: number) => ({
  total,
  reserved: 0,
  minUnit: 1,
  maxUnit: 10,
  stepSize: 1,
  allocationRatio: 1,
});

test('a write that does not match the fleet is not shown, and no other write is judged by it', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const create = (uuid: string, name: string): ProviderWrite => {
        const tags = newProviderTags({ uuid, name, parentUuid: null });
        return { kind: 'root', uuid, name, tags };
      };
      await writeProviders(database, [create('a', 'a'), create('b', 'b')]);
      const keeper = await openFleet(database);
      await remove(database, 'a');
      await remove(database, 'b');
      // One with the UUID of a provider that the fleet still shows, one with the name.
      for (const wanted of [create('a', 'c'), create('d', 'b')]) {
        const [done] = (await writeProviders(database, [wanted])).values();
        assert.ok(done);
        assert.equal(keeper.applyOwnWrite({ xid: done.xid, effects: [], providers: [done] }), false);
        assert.equal(keeper.snapshot.shown, undefined);
      }
      assert.deepEqual(formOf(await keeper.fresh()), formOf((await loadFleet(database)).living.fleet));
    } finally {
      await database.close();
    }
  });
});

test('a write of a provider during a refresh that failed is shown like any other, also below its children', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    const gate = openGate();
    try {
      const keeper = await openFleet({ ...database, kysely: database.kysely.withPlugin(gate.plugin) });
      const create = async (name: string, below: 'a' | null): Promise<void> => {
        const wanted = writeOf(keeper.known, name, { kind: 'create', below });
        assert.ok(wanted);
        const [done] = (await writeProviders(database, [wanted])).values();
        assert.ok(done);
        assert.ok(keeper.applyOwnWrite({ xid: done.xid, effects: [], providers: [done] }));
      };
      const [read = assert.fail()] = await gate.whileClosed(() => keeper.fresh());
      await create('a', null);
      gate.fail(new Error('the refresh failed'));
      await assert.rejects(read, /the refresh failed/);
      await create('b', 'a');
      assert.deepEqual(formOf(await keeper.fresh()), formOf((await loadFleet(database)).living.fleet));
    } finally {
      gate.open();
      await database.close();
    }
  });
});
