import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capacityText } from '../../src/metrics/capacity.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';

test('the capacity of many providers is written in pieces, between which others are served', () => {
  const count = 3000;
  const nodes = Array.from({ length: count }, (_, index) =>
    nodeAt(index, { stock: { VCPU: stockOf(index + 1), DISK_GB: { ...stockOf(8), used: 3 } } }),
  );
  const fleet = fleetOf(nodes);
  for (const limit of [-1, 0, 1, 1700]) {
    const shown = limit === -1 ? count : limit;
    const work = capacityText(fleet, limit);
    let pauses = 0;
    let step = work.next();
    for (; !step.done; step = work.next()) pauses += 1;
    const lines = Buffer.concat(step.value).toString().split('\n').slice(0, -1);
    assert.ok(pauses >= Math.floor((shown * 2 * 5) / 500), `${pauses} for ${shown}`);
    assert.ok(step.value.every((part) => part.length < 100_000));
    // Five figures of two classes each, and two lines of comments for each figure.
    assert.equal(lines.length, limit === 0 ? 0 : 5 * (2 * shown + 2));
    if (limit === 0) continue;
    const has = (line: string) => assert.ok(lines.includes(line), line);
    has(`openstack_placement_resource_total{hostname="provider ${shown - 1}",resourcetype="VCPU"} ${shown}`);
    has('openstack_placement_resource_used{hostname="provider 0",resourcetype="DISK_GB"} 3');
    const first = lines.indexOf('# TYPE openstack_placement_resource_used gauge');
    assert.ok(
      lines
        .slice(first + 1, first + 1 + 2 * shown)
        .every((line) => line.startsWith('openstack_placement_resource_used{')),
    );
  }
});
