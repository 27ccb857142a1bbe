/**
 * The tag is checked against the content that was read, and the write against the database: no change can come in
 * between. Tested statement by statement.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FleetSnapshot, readFleetSnapshot } from '../../db/fleet/change_log.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { deleteSeenAllocations } from '../../db/statements/claims/delete_allocations.ts';
import type { NamedAllocation } from '../../db/statements/claims/read_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { deleteResourceClass } from '../../db/statements/names/resource_classes.ts';
import { deleteTrait } from '../../db/statements/names/traits.ts';
import { deleteProvider } from '../../db/statements/providers/delete_provider.ts';
import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { moveProvider, renameProvider } from '../../db/statements/providers/update_provider.ts';
import { aggregatesTag, inventoriesTag, traitsTag } from '../../src/placement/entity_tag.ts';
import { isWritten, type TwoConnections, whileOther, withTwoConnections } from '../races/two_connections.ts';

const asSeen = { name: 'rp1', parentUuid: null };

async function nameOf({ other }: TwoConnections): Promise<unknown> {
  return (await other.query('select name from resource_providers where id = 1')).rows[0]?.name;
}

test('a provider is renamed, moved or deleted only if it has not changed since it was read', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    const renamed = ["update resource_providers set name = 'theirs' where id = 1"];
    const ours = () => renameProvider(database, { id: 1, uuid: 'rp1', seen: asSeen }, 'ours');
    assert.equal(await whileOther(connections, renamed, ours), 'changed');
    assert.equal(await nameOf(connections), 'theirs');

    await other.query("update resource_providers set name = 'rp1' where id = 1");
    const move = {
      id: 1,
      uuid: 'rp1',
      name: 'ours',
      parentId: 2,
      rootId: 2,
      subtreeIds: [1, 3],
      judged: [
        { id: 1, uuid: 'rp1', parentId: null },
        { id: 2, uuid: 'rp2', parentId: null },
        { id: 3, uuid: 'rp3', parentId: 1 },
      ],
      seen: asSeen,
    };
    assert.equal(await whileOther(connections, renamed, () => moveProvider(database, move)), 'changed');

    await other.query("update resource_providers set name = 'rp1' where id = 1");
    await other.query('update resource_providers set parent_provider_id = null where id = 3');
    const seenAsRoot = { name: 'rp3', parentUuid: null };
    const adopted = ['update resource_providers set parent_provider_id = 2 where id = 3'];
    assert.equal(
      await whileOther(connections, adopted, () => deleteProvider(database, { id: 3, uuid: 'rp3', seen: seenAsRoot })),
      'changed',
    );

    assert.equal(await renameProvider(database, { id: 1, uuid: 'rp1', seen: asSeen }, 'ours'), 'done');
    assert.equal(await nameOf(connections), 'ours');
    assert.equal(await moveProvider(database, { ...move, judged: [], seen: asSeen }), 'changed');
    assert.equal(
      await deleteProvider(database, { id: 3, uuid: 'rp3', seen: { name: 'rp3', parentUuid: 'rp2' } }),
      'deleted',
    );
  });
});

test('aggregates are replaced only if they have not changed since they were read, even at the same generation', async () => {
  await withTwoConnections(async (connections) => {
    const { database } = connections;
    const tag = aggregatesTag(['ours']);
    const below = [
      'select id from resource_providers where id = 1 for no key update',
      `insert into placement_aggregates (id, uuid) values (1000, 'theirs')`,
      'insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1000)',
    ];
    const ours = (judgedOn: FleetSnapshot) =>
      isWritten(database, {
        kind: 'aggregates',
        providerId: 1,
        uuid: 'rp1',
        generation: 5,
        uuids: ['ours'],
        present: ['theirs'],
        tag,
        tagBefore: tag,
        judgedOn,
      });
    const before = await readFleetSnapshot(database.kysely);
    assert.equal(await whileOther(connections, below, () => ours(before)), false);
    assert.equal(await ours(before), false);
    assert.equal(await ours(await readFleetSnapshot(database.kysely)), true);
  });
});

test('inventories and traits are not written if their names change in between: the tag has the old names', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
    await other.query(`insert into traits (id, name) values (10000, 'CUSTOM_T')`);
    const inventories: ProviderWrite = {
      kind: 'inventories',
      providerId: 1,
      uuid: 'rp1',
      generation: 5,
      put: [],
      remove: [0],
      present: [{ id: 10_000, name: 'CUSTOM_C' }],
      tag: inventoriesTag([]),
      tagBefore: inventoriesTag([]),
    };
    const renamedClass = [`update resource_classes set name = 'CUSTOM_D' where id = 10000`];
    assert.equal(await whileOther(connections, renamedClass, () => isWritten(database, inventories)), false);
    const worn = [{ id: 10_000, name: 'CUSTOM_T' }];
    const traits: ProviderWrite = {
      kind: 'traits',
      providerId: 1,
      uuid: 'rp1',
      generation: 5,
      traits: [],
      present: worn,
      tag: traitsTag(['CUSTOM_T']),
      tagBefore: traitsTag([]),
    };
    const renamedTrait = [`update traits set name = 'CUSTOM_U' where id = 10000`];
    assert.equal(await whileOther(connections, renamedTrait, () => isWritten(database, traits)), false);
    const { rows } = await other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 5 }]);
  });
});

const made = [
  `insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1)`,
  `insert into allocations (id, resource_provider_id, resource_class_id, consumer_id, used) values (7, 2, 0, 'c', 1)`,
];
const names = { provider_uuid: 'rp2', class_name: 'VCPU' };
const seen: readonly NamedAllocation[] = [{ id: 7, providerId: 2, classId: 0, used: 1, ...names }];
const changes: Readonly<Record<string, readonly string[]>> = {
  'a deletion at the same generation': [`delete from allocations where consumer_id = 'c'`],
  'a change that leaves the generation': [`update allocations set used = 2 where consumer_id = 'c'`],
  'a move to another provider': [`update allocations set resource_provider_id = 1 where consumer_id = 'c'`],
  'a deletion, and the same made again, at the same generation': [
    `delete from consumers where uuid = 'c'`,
    `delete from allocations where consumer_id = 'c'`,
    made[0] ?? '',
    `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, 'c', 9)`,
  ],
  'a write of the consumer that leaves its allocations': [`update consumers set generation = 2 where uuid = 'c'`],
  'a rewrite': [
    `update consumers set generation = 2 where uuid = 'c'`,
    `delete from allocations where consumer_id = 'c'`,
    `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 9)`,
  ],
};

const rewrite: ClaimWrite = {
  providers: [],
  consumers: [
    {
      uuid: 'c',
      generation: 1,
      hasOldAllocations: false,
      projectExternalId: 'project',
      userExternalId: 'user',
      consumerType: null,
      allocations: [{ providerId: 1, classId: 0, used: 5 }],
      etag: null,
      seen,
    },
  ],
  inventories: [],
};

for (const [what, statements] of Object.entries(changes)) {
  test(`allocations are replaced and deleted only if they have not changed since they were read: ${what}`, async () => {
    await withTwoConnections(async (connections) => {
      const { database, other } = connections;
      const content = async () =>
        (await other.query('select resource_provider_id, used from allocations order by id')).rows;
      for (const ours of [
        async () => assert.deepEqual((await writeClaims(database, [rewrite])).lost, ['consumer']),
        async () => assert.equal(await deleteSeenAllocations(database, 'c', { generation: 1, allocations: seen }), 0),
      ]) {
        await other.query('delete from allocations');
        await other.query('delete from consumers');
        for (const statement of made) await other.query(statement);
        let theirs: unknown;
        await whileOther(connections, statements, async () => {
          theirs = await content(); // inside their transaction, which is still open
          await ours();
        });
        assert.deepEqual(await content(), theirs);
      }
    });
  });
}

test('allocations are not replaced or deleted where an allocation was added at the same generation', async () => {
  await withTwoConnections(async ({ database, other }) => {
    for (const statement of made) await other.query(statement);
    await other.query(
      `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 9)`,
    );
    assert.deepEqual((await writeClaims(database, [rewrite])).lost, ['consumer']);
    assert.equal(await deleteSeenAllocations(database, 'c', { generation: 1, allocations: seen }), 0);
    assert.equal((await other.query('select from allocations')).rowCount, 2);
  });
});

test('allocations are deleted only if their classes and providers have the names that were read', async () => {
  const renamings = [
    `update resource_classes set name = 'CUSTOM_D' where id = 10000`,
    `update resource_providers set uuid = 'x' where id = 2`,
  ];
  for (const renaming of renamings) {
    await withTwoConnections(async (connections) => {
      const { database, other } = connections;
      await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
      for (const statement of made) await other.query(statement);
      await other.query('update allocations set resource_class_id = 10000');
      const allocations = seen.map((each) => ({ ...each, classId: 10_000, class_name: 'CUSTOM_C' }));
      const ours = () => deleteSeenAllocations(database, 'c', { generation: 1, allocations });
      assert.equal(await whileOther(connections, [renaming], ours), 0);
      await other.query(`update resource_classes set name = 'CUSTOM_C' where id = 10000`);
      await other.query(`update resource_providers set uuid = 'rp2' where id = 2`);
      assert.equal(await ours(), 1);
    });
  }
});

test('unchanged allocations are replaced and deleted, also old ones without a consumer record', async () => {
  await withTwoConnections(async ({ database, other }) => {
    for (const statement of made) await other.query(statement);
    assert.deepEqual((await writeClaims(database, [rewrite])).lost, [undefined]);
    await other.query('delete from consumers');
    const { rows } = await other.query('select id from allocations');
    const old = [{ id: rows[0].id, providerId: 1, classId: 0, used: 5 }];
    assert.equal(await deleteSeenAllocations(database, 'c', { generation: null, allocations: seen }), 0);
    const [consumer] = rewrite.consumers;
    if (consumer === undefined) throw new Error('The claim has a consumer.');
    const asOld = { ...consumer, generation: null, hasOldAllocations: true };
    assert.deepEqual((await writeClaims(database, [{ ...rewrite, consumers: [{ ...asOld, seen }] }])).lost, [
      'consumer',
    ]);
    assert.deepEqual((await writeClaims(database, [{ ...rewrite, consumers: [{ ...asOld, seen: old }] }])).lost, [
      undefined,
    ]);
    const now = (await other.query('select id from allocations')).rows[0].id;
    const present = [{ id: now, providerId: 1, classId: 0, used: 5, ...names, provider_uuid: 'rp1' }];
    assert.equal(await deleteSeenAllocations(database, 'c', { generation: 1, allocations: present }), 1);
    assert.equal((await other.query('select from consumers')).rowCount, 0);
  });
});

test('a class or a trait that was renamed in between is not deleted by its old name', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
    await other.query(`insert into traits (id, name) values (10000, 'CUSTOM_T')`);
    const classRenamed = [`update resource_classes set name = 'CUSTOM_D' where id = 10000`];
    const deleteClass = () => deleteResourceClass(database, { id: 10_000, name: 'CUSTOM_C' });
    assert.equal(await whileOther(connections, classRenamed, deleteClass), 'gone');
    const traitRenamed = [`update traits set name = 'CUSTOM_U' where id = 10000`];
    const deleteIt = () => deleteTrait(database, { id: 10_000, name: 'CUSTOM_T' });
    assert.equal(await whileOther(connections, traitRenamed, deleteIt), 'gone');
  });
});
