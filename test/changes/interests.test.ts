/** What clients with different interests get of the same changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partBits } from '../../db/fleet/changed_parts.ts';
import { changeSetOf, type Interest, interestOf } from '../../src/fleet/follow/change_set.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';

test('each client gets the changes of its own parts, class and tree, also after others got theirs', () => {
  const nodes = [nodeAt(0, { stock: { VCPU: stockOf(8) } }), nodeAt(1, { stock: { DISK_GB: stockOf(8) } })];
  const fleet = fleetOf(nodes);
  const [first, second] = nodes.map(({ uuid }) => uuid);
  const changes = changeSetOf(fleet, [
    ['7', 1, null, partBits.usages, null],
    ['7', 2, null, partBits.usages | partBits.traits, null],
  ]);
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
  for (const [interest, expected] of interests) {
    assert.deepEqual(JSON.parse(changes.text(interest)), expected, interest.key);
    assert.equal(changes.size(interest), expected.length, interest.key);
  }
});
