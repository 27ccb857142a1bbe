/** What clients with different interests get of the same changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consumersBit, descendantsBit, goneBit, partBits, termBit } from '../../db/fleet/changed_parts.ts';
import { changeSetOf, type Interest, interestOf } from '../../src/fleet/follow/change_set.ts';
import { classNames, fleetOf, nodeAt, stockOf, traitNames } from '../candidates/topology.ts';

test('each client gets the changes of its own parts, class and tree, also after others got theirs', () => {
  const nodes = [nodeAt(0, { stock: { VCPU: stockOf(8) } }), nodeAt(1, { stock: { DISK_GB: stockOf(8) } })];
  const fleet = fleetOf(nodes);
  const [first, second] = nodes.map(({ uuid }) => uuid);
  const changes = changeSetOf(fleet, [
    ['7', 1, null, partBits.usages, null],
    ['7', 2, null, partBits.usages | partBits.traits, null],
    ['7', 3, 'gone', partBits.provider, null],
    ['7', null, null, partBits.traits, null],
    ['7', null, null, partBits.inventories, null],
  ]);
  const forAll = [{ resource_provider: 'gone', deleted: true }, { traits: true }, { resource_classes: true }];
  const usages = (uuid: string | undefined) => ({ resource_provider: uuid, parts: ['usages'] });
  const interests: readonly (readonly [Interest, readonly object[]])[] = [
    [interestOf(['usages']), [usages(first), usages(second)]],
    [interestOf(['traits']), [{ resource_provider: second, parts: ['traits'] }]],
    [interestOf(['usages'], { className: 'VCPU', inTree: undefined }), [usages(first)]],
    [interestOf(['usages'], { className: 'DISK_GB', inTree: undefined }), [usages(second)]],
    [interestOf(['usages'], { className: undefined, inTree: first }), [usages(first)]],
    [interestOf(['usages'], { className: undefined, inTree: second }), [usages(second)]],
    [interestOf(['usages'], { className: 'VCPU', inTree: second }), []],
  ];
  for (const [interest, own] of interests) {
    const expected = [...own, ...forAll];
    assert.deepEqual(JSON.parse(changes.text(interest)), expected, interest.key);
    assert.equal(changes.size(interest), expected.length, interest.key);
  }
});

test('a client of a tree gets all of the tree that its provider moved to, and each provider once', () => {
  // The last two are parents of each other.
  const parents = [undefined, 0, 0, 4, 3];
  const fleet = fleetOf(parents.map((parent, index) => nodeAt(index, { parent })));
  const [root, sibling, moved, oldest, other] = parents.map((_, index) => nodeAt(index).uuid);
  const changes = changeSetOf(fleet, [
    ['7', 3, null, partBits.provider | descendantsBit, null],
    ['7', 5, null, partBits.provider | descendantsBit, null],
  ]);
  const entriesFor = (interest: Interest) => JSON.parse(changes.text(interest));
  const of = (parts: readonly string[], ...uuids: readonly (string | undefined)[]) =>
    uuids.map((uuid) => ({ resource_provider: uuid, parts }));
  assert.deepEqual(entriesFor(interestOf(['provider'])), of(['provider'], moved, other, oldest));
  assert.deepEqual(
    entriesFor(interestOf(['usages'], { inTree: moved })),
    of(['usages'], root, sibling, moved, other, oldest),
  );
  assert.deepEqual(entriesFor(interestOf(['consumers'], { inTree: moved })), []);
});

test('a class or a trait with another name changes the providers that have it', () => {
  const nodes = [
    nodeAt(0, { stock: { VCPU: stockOf(8) } }),
    nodeAt(1, { stock: { DISK_GB: stockOf(8) }, traits: ['CUSTOM_RARE'] }),
    nodeAt(2, { traits: ['CUSTOM_FAST'] }),
  ];
  const [first, second] = nodes.map(({ uuid }) => uuid);
  const changes = changeSetOf(fleetOf(nodes), [
    ['7', null, null, partBits.inventories, [classNames.indexOf('VCPU') + 1]],
    // One of them has no id any more. A provider without a UUID, which is gone, has another row.
    ['7', null, null, partBits.traits, [null, traitNames.indexOf('CUSTOM_RARE') + 1]],
    ['7', 99, null, partBits.usages, null],
  ]);
  assert.deepEqual(JSON.parse(changes.text(interestOf())), [
    { resource_provider: first, parts: ['inventories', 'usages'] },
    { resource_provider: second, parts: ['traits'] },
    { traits: true },
    { resource_classes: true },
  ]);
});

test('a provider is of a tree if its root is that of the tree', () => {
  const parents = [undefined, 0, 0, undefined];
  const fleet = fleetOf(parents.map((parent, index) => nodeAt(index, { parent })));
  const changes = changeSetOf(fleet, [
    ['7', 3, null, partBits.usages, null],
    ['7', 4, null, partBits.usages, null],
  ]);
  const entries = JSON.parse(changes.text(interestOf(['usages'], { inTree: nodeAt(1).uuid })));
  assert.deepEqual(entries, [{ resource_provider: nodeAt(2).uuid, parts: ['usages'] }]);
});

test('the last row of a consumer counts; a client that follows consumers reads all again where any may have changed', () => {
  const rows = [
    ['7', null, 'made again', consumersBit | goneBit, null],
    ['7', null, 'ended', consumersBit, null],
    ['8', null, 'made again', consumersBit, null],
    ['8', null, 'ended', consumersBit | goneBit | termBit, null],
    ['8', null, 'deleted', consumersBit | goneBit, null],
  ] as const;
  const [consumers, providers] = [interestOf(['consumers']), interestOf()];
  const some = changeSetOf(fleetOf([]), rows);
  assert.deepEqual(JSON.parse(some.text(consumers)), [
    { consumer: 'made again' },
    { consumer: 'ended', gone: true, ended: 'term' },
    { consumer: 'deleted', gone: true, ended: 'released' },
  ]);
  assert.deepEqual([some.size(consumers), some.size(providers)], [3, 0]);
  const any = changeSetOf(fleetOf([]), [...rows, ['8', null, null, consumersBit, null]]);
  assert.deepEqual([any.size(consumers), any.size(providers)], [Number.POSITIVE_INFINITY, 0]);
});
