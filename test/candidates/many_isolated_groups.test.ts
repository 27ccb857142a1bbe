/** More isolated groups than `occupancy.ts` keeps in its list, on devices that have room for two consumers each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { search } from '../support/search.ts';
import { candidateKey } from './candidate_key.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { fleetOf, nodeAt, stockOf, type Topology } from './topology.ts';

/** A host with so many devices, each in an aggregate of its own. */
const hostWith = (devices: number): Topology => [
  nodeAt(0),
  ...Array.from({ length: devices }, (_, index) =>
    nodeAt(index + 1, { parent: 0, stock: { SRIOV_NET_VF: stockOf(2) }, aggregates: [`device ${index}`] }),
  ),
];

type Found = { readonly key: string; readonly used: number };

/** Candidates of isolated groups for one function each, of which the first ones each name a device. */
function* candidatesOf(groups: number, naming: number, devices: number): Generator<Found> {
  const fleet = fleetOf(hostWith(devices));
  const wanted = Array.from({ length: groups }, (_, index) => {
    const required = index < naming ? [[`device ${index}`]] : [];
    return groupOf(`${index}`, { SRIOV_NET_VF: 1 }, { aggregates: { required, forbidden: [] } });
  });
  const options = { strategy: 'depth-first', randomize: false, limited: false } as const;
  for (const candidate of search(fleet, requestOf(wanted, { isolate: true }), options)) {
    const used = new Set(candidate.flatMap(({ providers }) => providers)).size;
    yield { key: candidateKey(fleet, candidate), used };
  }
}

test('the last four groups take the devices that the first ones leave in every order', () => {
  // The list is full within the groups that may choose, or before them.
  for (const naming of [5, 6, 7, 8, 9]) {
    const found = [...candidatesOf(naming + 4, naming, naming + 4)];
    assert.equal(found.length, 24, `behind ${naming} groups`);
    assert.equal(new Set(found.map(({ key }) => key)).size, 24);
    assert.ok(found.every(({ used }) => used === naming + 4));
  }
});

test('of twelve groups on thirteen devices no two share one, and no candidate comes twice', () => {
  const found = [...candidatesOf(12, 0, 13).take(3000)];
  assert.ok(found.every(({ used }) => used === 12));
  assert.equal(new Set(found.map(({ key }) => key)).size, 3000);
});
