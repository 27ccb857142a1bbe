/** Which waiting claims are taken when room becomes free, against a search of all trees for each claim. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openWaitingGroups, type WaitingForRoom } from '../../src/claims/waiting/groups.ts';
import { wouldTake } from '../../src/claims/waiting/would_take.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { aggregates, fleetOf, nodeAt, sharingTrait, stockOf } from '../candidates/topology.ts';
import { claimByQueries } from '../support/claims.ts';
import { holdTime } from '../support/hold_time.ts';

const [vcpu, disk] = [1, 3]; // as in `classNames`
const [shared] = aggregates;
const total = 4;
/** Two hosts with VCPU, of which the first one shares a pool of DISK_GB. */
const topology = [
  nodeAt(0, { stock: { VCPU: stockOf(total) }, aggregates: [shared] }),
  nodeAt(1, { stock: { VCPU: stockOf(total) } }),
  nodeAt(2, { stock: { DISK_GB: stockOf(total) }, aggregates: [shared], traits: [sharingTrait] }),
];
const inventories = [
  { providerId: 1, classId: vcpu },
  { providerId: 2, classId: vcpu },
  { providerId: 3, classId: disk },
] as const;
const requests = [
  requestOf([groupOf('', { VCPU: 1 })]),
  requestOf([groupOf('', { VCPU: 3 })]),
  requestOf([groupOf('', { VCPU: 1, DISK_GB: 2 })]),
] as const;

function claimOf(index: number, kind: number): WaitingForRoom {
  const request = requests[kind % requests.length];
  assert.ok(request);
  return { claim: claimByQueries(`${index}`, request), sinceMs: index, index };
}

const usedOf = (fleet: Fleet, providerId: number, classId: number): number =>
  fleet.byId.get(providerId)?.inventories.find(({ fields }) => fields.classId === classId)?.used ?? 0;

function change(fleet: Fleet, at: number, delta: number): readonly number[] {
  const inventory = inventories[at % inventories.length];
  assert.ok(inventory);
  const { providerId, classId } = inventory;
  const used = usedOf(fleet, providerId, classId);
  // What is used stays between nothing and everything.
  const possible = Math.max(-used, Math.min(total - used, delta));
  showEffects(fleet, { effects: [{ providerId, bump: 0, used: [{ classId, delta: possible }] }] }, 1);
  return [providerId];
}

const anyStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ step: fc.constant('come'), at: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ step: fc.constant('free'), at: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ step: fc.constantFrom('occupy', 'refuse', 'leave', 'pass'), at: fc.nat(5) }) },
  fc.record({ step: fc.constantFrom('free many', 'free all'), at: fc.nat(2) }),
);

test('after each change the claims that fit are taken in the order of their arrival, and none that fits is left', (t) => {
  const pass = holdTime(t);
  let takenAgain = 0;
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 5, maxLength: 30 }), (steps) => {
      const fleet = fleetOf(topology);
      const groups = openWaitingGroups<WaitingForRoom>();
      const waiting = new Set<WaitingForRoom>();
      const refused = new Set<WaitingForRoom>();
      let came = 0;
      for (const at of inventories.keys()) change(fleet, at, total);
      const wait = (item: WaitingForRoom, pauseMs: number): void => {
        waiting.add(item);
        groups.add(item, pauseMs);
      };
      /** Writes what fits; what was to be refused comes back, and may be written later. */
      const take = (isRefused: boolean): void => {
        const { taken, isDone } = groups.take(fleet, [], 10);
        assert.ok(isDone);
        assert.deepEqual(
          taken.map(({ item: { index } }) => index),
          taken.map(({ item: { index } }) => index).toSorted((a, b) => a - b),
        );
        const together = taken.flatMap(({ amounts }) => amounts);
        for (const { providerId, classId } of inventories) {
          const its = together.filter((amount) => amount.providerId === providerId && amount.classId === classId);
          const sum = its.reduce((all, { amount }) => all + amount, 0);
          assert.ok(sum <= total - usedOf(fleet, providerId, classId), `${sum} of provider ${providerId} at once`);
        }
        for (const { item, amounts } of taken) {
          assert.ok(waiting.delete(item));
          if (refused.delete(item)) takenAgain += 1;
          if (isRefused) {
            refused.add(item);
            continue;
          }
          const used = amounts.map(({ providerId, classId, amount }) => ({
            providerId,
            bump: 0,
            used: [{ classId, delta: amount }],
          }));
          showEffects(fleet, { effects: used }, 1);
        }
        for (const item of refused) if (!waiting.has(item)) wait(item, 20);
      };
      for (const { step, at } of steps) {
        if (step === 'come') wait(claimOf(came++, at), 0);
        else if (step === 'occupy') change(fleet, at, total);
        else if (step === 'pass') pass(30);
        else if (step === 'leave') {
          const item = [...waiting][at];
          if (item === undefined) continue;
          waiting.delete(item);
          refused.delete(item);
          groups.remove(item);
        } else if (step === 'free all') {
          change(fleet, at, -2);
          groups.noteFreed('all');
        } else {
          groups.noteFreed(change(fleet, at, -2));
          // With so many changes they are not kept one by one.
          if (step === 'free many') for (let count = 0; count < 1_100; count += 1) groups.noteFreed([2]);
        }
        take(step === 'refuse');
      }
      pass(100);
      take(false);
      for (const { claim, index } of waiting)
        assert.equal(wouldTake(fleet, claim, undefined), undefined, `${index} fits`);
    }),
    { numRuns: 300 },
  );
  assert.ok(takenAgain > 20, `${takenAgain} were taken again after a refusal`);
});
