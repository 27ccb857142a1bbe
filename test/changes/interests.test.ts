/** What clients with different interests get of the same changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { descendantsBit, partBits } from '../../db/fleet/changed_parts.ts';
import { changeSetOf, type Interest, interestOf } from '../../src/fleet/follow/change_set.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';

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
