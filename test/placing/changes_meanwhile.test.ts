/** Between the guards of a claim and its commit, nothing that the claim relied on may change, so that no request sees the change alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../../db/engine/connect.ts';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import type { AffinityGuard, ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { deleteResourceClass, renameResourceClass } from '../../db/statements/names/resource_classes.ts';
import { deleteTrait } from '../../db/statements/names/traits.ts';
import { deleteProvider } from '../../db/statements/providers/delete_provider.ts';
import { moveProvider } from '../../db/statements/providers/update_provider.ts';
import { claim } from '../races/judged_claim.ts';
import { isWritten, noTraits, untilWaiting, withTwoConnections } from '../races/two_connections.ts';

const [ours, theirs] = ['aaaaaaaa-0000-4000-8000-000000000001', 'bbbbbbbb-0000-4000-8000-000000000002'];
const some = { id: 20_000, name: 'CUSTOM_SOME' };

/** A claim on provider 1 that relied on provider 3, which is in the same tree, on a class, a trait and where a consumer was. */
const placement = (affinity: AffinityGuard): ClaimWrite => ({
  ...claim([ours]),
  reliedOn: [1, 3],
  reliedOnTrees: [1],
  customClasses: [some],
  customTraits: [some],
  affinity: [affinity],
  relatedConsumers: [ours, theirs],
});

const nowhere: AffinityGuard = { uuid: theirs, generation: null, recordId: null, providerIds: [] };
const recorded: AffinityGuard = { uuid: theirs, generation: 1, recordId: 1, providerIds: [] };

/** Their claim, which names no consumer and takes nothing from provider 1. */
const theirClaim = (generation: number | null): ClaimWrite => ({
  ...claim([theirs], generation),
  providers: [{ providerId: 2, generation: 5, bump: 1 }],
});

type Change = (database: Database) => Promise<unknown>;

const traitsOf =
  (providerId: number): Change =>
  async (database) =>
    assert.ok(await isWritten(database, noTraits(providerId)));

type Case = {
  readonly change: Change;
  readonly affinity?: AffinityGuard;
  /** A statement before the claim. */
  readonly before?: string;
};

const waiting: Readonly<Record<string, Case>> = {
  'the traits of a provider of the tree': { change: traitsOf(3) },
  'the traits of a provider whose root is not stored': {
    before: 'update resource_providers set root_provider_id = null where id = 3',
    change: traitsOf(3),
  },
  'the deletion of a provider of the tree': {
    change: async (database) => assert.equal(await deleteProvider(database, { id: 3, uuid: 'rp3' }), 'deleted'),
  },
  'a move out of the tree': {
    change: async (database) => {
      const judged = [1, 2, 3].map((id) => ({ id, uuid: `rp${id}`, parentId: id === 3 ? 1 : null }));
      const move = { id: 3, uuid: 'rp3', name: 'rp3', parentId: 2, rootId: 2, subtreeIds: [3], judged };
      assert.equal(await moveProvider(database, move), 'done');
    },
  },
  'the deletion of a trait': {
    change: async (database) => assert.equal(await deleteTrait(database, some), 'deleted'),
  },
  'the deletion of a class': {
    change: async (database) => assert.equal(await deleteResourceClass(database, some), 'deleted'),
  },
  'another name of a class': {
    change: async (database) => assert.equal(await renameResourceClass(database, some, 'CUSTOM_OTHER'), 'renamed'),
  },
  'a consumer that is made': {
    change: async (database) => assert.deepEqual((await writeClaims(database, [theirClaim(null)])).lost, [undefined]),
  },
  'a consumer that gets something': {
    affinity: recorded,
    change: async (database) => assert.deepEqual((await writeClaims(database, [theirClaim(1)])).lost, [undefined]),
  },
};

const free: typeof waiting = {
  'the traits of another tree': { change: traitsOf(2) },
  'a claim on a provider of the tree': {
    change: async (database) => {
      const write = { ...theirClaim(null), providers: [{ providerId: 3, generation: 5, bump: 1 }] };
      const consumers = write.consumers.map((consumer) => ({ ...consumer, uuid: 'other' }));
      assert.deepEqual((await writeClaims(database, [{ ...write, consumers }])).lost, [undefined]);
    },
  },
};

/** Holds the commit of a claim up while something changes. @returns whether the change waits for it */
async function isHeldUp({ change, affinity = nowhere, before = 'select' }: Case): Promise<boolean> {
  let waits = false;
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into traits (id, name) values (${some.id}, '${some.name}');
      insert into resource_classes (id, name) values (${some.id}, '${some.name}');
      create function wait_for_test() returns trigger language plpgsql as
        $$begin if new.consumer_id = '${ours}' then perform pg_advisory_xact_lock(1); end if; return null; end$$;
      create constraint trigger wait_for_test after insert on allocations deferrable initially deferred
        for each row execute function wait_for_test();
      select pg_advisory_lock(1)`);
    if (affinity.recordId !== null) {
      await other.query(
        `insert into consumers (id, uuid, project_id, user_id, generation) values (1, '${theirs}', 1, 1, 1)`,
      );
    }
    await other.query(before);
    const judgedOn = await readFleetSnapshot(database.kysely);
    const claimed = writeClaims(database, [placement(affinity)], { judgedOn });
    claimed.catch(() => {}); // it is awaited below
    await untilWaiting(other);
    const changed = change(database);
    waits = await Promise.race([changed.then(() => false), untilWaiting(other, 2).then(() => true)]);
    await other.query('select pg_advisory_unlock(1)');
    await changed;
    assert.deepEqual((await claimed).lost, [undefined]);
    const { rows } = await other.query('select uuid from consumers where generation = 0');
    assert.deepEqual(rows, [], 'a record that only kept others from making it is removed');
  });
  return waits;
}

for (const [name, what] of Object.entries(waiting)) {
  test(`a change waits for the commit of a claim that relied on what is changed: ${name}`, async () => {
    assert.ok(await isHeldUp(what));
  });
}

for (const [name, what] of Object.entries(free)) {
  test(`a change does not wait for the commit of a claim that did not rely on what is changed: ${name}`, async () => {
    assert.ok(!(await isHeldUp(what)));
  });
}
