/**
 * Two transactions at the same time, statement by statement: the second one sees the changes of the first, or writes
 * nothing.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSqlstate, sqlstate } from '../../db/engine/failures.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { deleteResourceClass } from '../../db/statements/names/resource_classes.ts';
import { deleteTrait } from '../../db/statements/names/traits.ts';
import { deleteProvider } from '../../db/statements/providers/delete_provider.ts';
import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { moveProvider } from '../../db/statements/providers/update_provider.ts';
import { aggregatesTag, inventoriesTag, inventoryTag, traitsTag } from '../../src/placement/entity_tag.ts';
import { claim } from './judged_claim.ts';
import {
  isWritten,
  newChild,
  type TwoConnections,
  untilWaiting,
  whileOther,
  withTwoConnections,
} from './two_connections.ts';

const bump = 'update resource_providers set generation = generation + 1 where id = 1';
const madeByOther = [
  `insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1)`,
  `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, 'c', 1)`,
];
const allocations = async ({ other }: TwoConnections) =>
  (await other.query('select consumer_id, resource_provider_id as provider, used from allocations order by 1, 2')).rows;
const inventory = { total: 1, reserved: 0, minUnit: 1, maxUnit: 1, stepSize: 1, allocationRatio: 1 };

test('a claim fails after waiting for another change of its provider', async () => {
  await withTwoConnections(async (connections) => {
    const ours = async () => (await writeClaims(connections.database, [claim(['c'])])).lost;
    assert.deepEqual(await whileOther(connections, [bump], ours), ['provider']);
    assert.deepEqual(await allocations(connections), []);
  });
});

test('a claim fails if its provider is deleted', async () => {
  await withTwoConnections(async (connections) => {
    const deletion = [
      'delete from inventories where resource_provider_id = 2',
      'delete from resource_providers where id = 2',
    ];
    const write = claim(['c']);
    const onSecond = { ...write, providers: [{ providerId: 2, generation: 5, bump: 1 }] };
    const ours = async () => (await writeClaims(connections.database, [onSecond])).lost;
    assert.deepEqual(await whileOther(connections, deletion, ours), ['provider']);
    assert.deepEqual(await allocations(connections), []);
  });
});

test('a provider is not deleted if a claim on it or a child of it was just written', async () => {
  await withTwoConnections(async (connections) => {
    const claimed = [bump.replace('id = 1', 'id = 2'), madeByOther[1] ?? ''];
    assert.equal(
      await whileOther(connections, claimed, () => deleteProvider(connections.database, { id: 2, uuid: 'rp2' })),
      'in use',
    );
    const child = [
      'select id from resource_providers where id = 3 for share',
      `insert into resource_providers (uuid, name, generation, parent_provider_id, root_provider_id) values ('x', 'x', 0, 3, 1)`,
    ];
    assert.equal(
      await whileOther(connections, child, () => deleteProvider(connections.database, { id: 3, uuid: 'rp3' })),
      'has children',
    );
  });
});

test('a provider that is only the root of another is deleted at the second attempt', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query('update resource_providers set parent_provider_id = null where id = 3');
    assert.equal(await deleteProvider(database, { id: 1, uuid: 'rp1' }), 'changed');
    const { rows } = await other.query(
      'select root_provider_id as root from resource_providers where id in (1, 3) order by id',
    );
    assert.deepEqual(rows, [{ root: 1 }, { root: null }]);
    assert.equal(await deleteProvider(database, { id: 1, uuid: 'rp1' }), 'deleted');
  });
});

test('a consumer is made once: the second batch is refused completely', async () => {
  await withTwoConnections(async (connections) => {
    const batch = async () => (await writeClaims(connections.database, [claim(['a']), claim(['c'])])).lost;
    await assert.rejects(whileOther(connections, madeByOther, batch), (error) =>
      hasSqlstate(error, sqlstate.uniqueViolation),
    );
    assert.deepEqual(await allocations(connections), [{ consumer_id: 'c', provider: 2, used: 1 }]);
    const { rows } = await connections.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 5 }]);
  });
});

test('batches that make the same consumers in different orders do not deadlock', async () => {
  await withTwoConnections(async ({ database }) => {
    for (let round = 0; round < 5; round++) {
      const uuids = Array.from({ length: 500 }, (_, index) => `${round} ${index}`);
      // The two claims use different providers, so they only conflict on the consumers.
      const batch = async (order: readonly string[], providerId: number) => {
        const write = claim(order);
        const consumers = write.consumers.map((each) => ({
          ...each,
          allocations: [{ providerId, classId: 0, used: 1 }],
        }));
        const { lost } = await writeClaims(database, [{ ...write, providers: [], consumers }]);
        return lost;
      };
      const results = await Promise.allSettled([batch(uuids, 1), batch(uuids.toReversed(), 2)]);
      const written = results.map((result) => {
        if (result.status === 'fulfilled') return result.value[0] === undefined;
        assert.ok(hasSqlstate(result.reason, sqlstate.uniqueViolation), String(result.reason));
        return false;
      });
      assert.equal(written.filter(Boolean).length, 1, 'one batch makes all consumers, and the other none');
    }
  });
});

test('a rewrite fails after another one of the same generation, and after a deletion', async () => {
  await withTwoConnections(async (connections) => {
    for (const statement of madeByOther) await connections.other.query(statement);
    const rewrite = async () => (await writeClaims(connections.database, [claim(['c'], 1)])).lost;
    const rewritten = [
      `update consumers set generation = 2 where uuid = 'c'`,
      `delete from allocations where consumer_id = 'c'`,
      `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, 'c', 5)`,
    ];
    assert.deepEqual(await whileOther(connections, rewritten, rewrite), ['consumer']);
    assert.deepEqual(await allocations(connections), [{ consumer_id: 'c', provider: 2, used: 5 }]);

    const deleted = [`delete from consumers where uuid = 'c'`, `delete from allocations where consumer_id = 'c'`];
    const second = async () => (await writeClaims(connections.database, [claim(['c'], 2)])).lost;
    assert.deepEqual(await whileOther(connections, deleted, second), ['consumer']);
    assert.deepEqual(await allocations(connections), []);
  });
});

test('a DELETE sees the changes of the writer whose lock it waited for', async () => {
  await withTwoConnections(async (connections) => {
    for (const statement of madeByOther) await connections.other.query(statement);
    const rewritten = [
      `update consumers set generation = 2 where uuid = 'c'`,
      `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 5)`,
    ];
    const ours = async () => (await deleteAllocations(connections.database, ['c'])).get('c');
    assert.equal(await whileOther(connections, rewritten, ours), 2);
    assert.deepEqual(await allocations(connections), []);
    const { rows } = await connections.other.query('select from consumers');
    assert.equal(rows.length, 0);
  });
});

test('a write of inventories fails after a claim on their provider, or the deletion of their class', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
    const put = [{ ...inventory, classId: 10_000, className: 'CUSTOM_C', tag: inventoryTag(inventory) }];
    const tag = inventoriesTag([['CUSTOM_C', inventory]]);
    const ours = () =>
      isWritten(database, {
        kind: 'inventories',
        providerId: 1,
        uuid: 'rp1',
        generation: 5,
        put,
        remove: [0],
        present: [],
        tag,
        tagBefore: tag,
      });
    assert.equal(await whileOther(connections, [bump], ours), false);
    await other.query('update resource_providers set generation = 5 where id = 1');
    assert.equal(await whileOther(connections, ['delete from resource_classes where id = 10000'], ours), false);
    assert.equal((await other.query('select from inventories where resource_provider_id = 1')).rowCount, 1);
  });
});

test('a class or trait that another transaction is about to use is not deleted', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
    await other.query(`insert into traits (id, name) values (10000, 'CUSTOM_T')`);
    const taken = [
      'select id from resource_classes where id = 10000 for key share',
      `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
         allocation_ratio) values (1, 10000, 1, 0, 1, 1, 1, 1)`,
    ];
    assert.equal(
      await whileOther(connections, taken, () => deleteResourceClass(database, { id: 10_000, name: 'CUSTOM_C' })),
      'in use',
    );
    const worn = ['insert into resource_provider_traits (resource_provider_id, trait_id) values (1, 10000)'];
    assert.equal(
      await whileOther(connections, worn, () => deleteTrait(database, { id: 10_000, name: 'CUSTOM_T' })),
      'in use',
    );

    await other.query('delete from resource_provider_traits');
    const traits = [{ id: 10_000, name: 'CUSTOM_T' }];
    const write: ProviderWrite = {
      kind: 'traits',
      providerId: 2,
      uuid: 'rp2',
      generation: 5,
      traits,
      present: [],
      tag: traitsTag(['CUSTOM_T']),
      tagBefore: traitsTag([]),
    };
    const gone = ['delete from traits where id = 10000'];
    assert.equal(await whileOther(connections, gone, () => isWritten(database, write)), false);
    const { rows } = await other.query('select generation from resource_providers where id = 2');
    assert.deepEqual(rows, [{ generation: 5 }]);
  });
});

test('below 1.19 the last writer of aggregates wins, with all its aggregates', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    const theirs = [
      'select id from resource_providers where id = 1 for no key update',
      `insert into placement_aggregates (id, uuid) values (1000, 'theirs')`,
      'insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1000)',
    ];
    const tag = aggregatesTag(['ours']);
    const ours = () =>
      isWritten(database, {
        kind: 'last aggregates',
        providerId: 1,
        uuid: 'rp1',
        uuids: ['ours'],
        tag,
        tagBefore: tag,
      });
    assert.equal(await whileOther(connections, theirs, ours), true);
    const { rows } = await other.query(`select uuid from resource_provider_aggregates m
      join placement_aggregates a on a.id = m.aggregate_id where m.resource_provider_id = 1`);
    assert.deepEqual(rows, [{ uuid: 'ours' }]);
  });
});

const move = { id: 1, uuid: 'rp1', name: 'rp1', parentId: 2, rootId: 2, subtreeIds: [1, 3] };
const judged = [
  { id: 1, uuid: 'rp1', parentId: null },
  { id: 2, uuid: 'rp2', parentId: null },
  { id: 3, uuid: 'rp3', parentId: 1 },
];
const roots = async ({ other }: TwoConnections) =>
  (await other.query('select uuid, root_provider_id as root from resource_providers order by id')).rows;

test('the move of a provider takes a child into account that was just added to its tree', async () => {
  await withTwoConnections(async (connections) => {
    const child = [
      'select id from resource_providers where id = 3 for share',
      `insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id)
         values (4, 'rp4', 'rp4', 0, 3, 1)`,
    ];
    const ours = () => moveProvider(connections.database, { ...move, judged });
    assert.equal(await whileOther(connections, child, ours), 'changed');
    const again = { ...move, subtreeIds: [1, 3, 4], judged: [...judged, { id: 4, uuid: 'rp4', parentId: 3 }] };
    assert.equal(await moveProvider(connections.database, again), 'done');
    assert.deepEqual(
      (await roots(connections)).map(({ root }) => root),
      [2, 2, 2, 2],
    );
  });
});

test('a child that waited for the move of its parent gets the new root', async () => {
  await withTwoConnections(async (connections) => {
    const moved = [
      'select id from resource_providers order by id for no key update',
      'update resource_providers set parent_provider_id = 2 where id = 1',
      'update resource_providers set root_provider_id = 2 where id in (1, 3)',
    ];
    const ours = () => isWritten(connections.database, newChild('rp4', { id: 3, uuid: 'rp3' }));
    assert.equal(await whileOther(connections, moved, ours), true);
    assert.deepEqual((await roots(connections)).at(-1), { uuid: 'rp4', root: 2 });
  });
});

test('a move and a new child in the same tree do not deadlock', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query('begin');
    // The same order as in createChildren: first the parent, and at the end the root, because of the foreign key.
    await other.query('select id from resource_providers where id = 3 for no key update');
    const moving = moveProvider(database, { ...move, judged });
    await untilWaiting(other); // it has locked the root, and waits for the parent
    await other.query(`insert into resource_providers (uuid, name, generation, parent_provider_id, root_provider_id)
      values ('rp4', 'rp4', 0, 3, 1)`);
    await other.query('commit');
    assert.equal(await moving, 'changed');
  });
});
