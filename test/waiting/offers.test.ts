/** Which waiting claims go before others, and get room that others did not take: on a made-up fleet, without a database. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Precedence } from '../../src/claims/claim.ts';
import { openOffers } from '../../src/claims/waiting/offers.ts';
import type { Waiter } from '../../src/claims/waiting/waiter.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';
import { claimByQueries } from '../support/claims.ts';
import { holdTime } from '../support/hold_time.ts';
import { newTestWaiter } from './new_waiter.ts';

const vcpu = 1; // as in `classNames`
const noOther: ReadonlySet<Precedence> = new Set();

/** The offers of a fleet of one host with two VCPU; time passes by `pass` only. A claim that fits is under way, until `refuse`. */
function openScene(t: TestContext) {
  const pass = holdTime(t);
  const fleet = fleetOf([nodeAt(0, { stock: { VCPU: stockOf(2) } })]);
  const underWay = new Set<Waiter>();
  const offers = openOffers(
    { known: fleet, snapshot: { pgSnapshot: '1:1:', lastXid: '0', serverRun: 'none' }, fresh: async () => fleet },
    { ofNew: async () => undefined },
    { isQueuedBehind: () => false },
    underWay,
    (waiter) => {
      offers.remove(waiter);
      underWay.add(waiter);
    },
  );
  const one = requestOf([groupOf('', { VCPU: 1 })]);
  const two = requestOf([groupOf('', { VCPU: 2 })]);
  let count = 0;
  return {
    offers,
    underWay,
    pass,
    /** Others take so much, or release it. */
    take: (delta: number) =>
      showEffects(fleet, { effects: [{ providerId: 1, bump: 0, used: [{ classId: vcpu, delta }] }] }, 1),
    claim: (amount: 1 | 2) => {
      pass(1);
      return newTestWaiter('process', null, count, claimByQueries(`${count++}`, amount === 1 ? one : two));
    },
    /** The write of a claim under way is refused, and it waits again. */
    refuse: (waiter: Waiter) => {
      const { promised } = waiter;
      assert.ok(underWay.delete(waiter));
      offers.add(waiter);
      offers.noteEnded(promised);
    },
  };
}

test('a claim that seemed to fit and was refused goes before later ones until it is found not to fit', (t) => {
  const { offers, underWay, pass, take, claim, refuse } = openScene(t);
  const before = claim(1);
  const refused = claim(1);
  const later = claim(2);
  offers.add(refused);
  assert.deepEqual([...underWay], [refused], 'it fits');
  take(2);
  refuse(refused);
  assert.deepEqual([...underWay], [], 'it pauses');
  assert.equal(offers.isBehind(later, noOther, true), true);
  assert.equal(offers.isBehind(later, noOther, false), false, 'it is not under way');
  assert.equal(offers.isBehind(before, noOther, true), false, 'an earlier one does not wait for it');
  pass(25);
  assert.equal(offers.isBehind(later, noOther, true), true, 'not checked yet');
  offers.offerRoom();
  assert.deepEqual([...underWay], [], 'others have the room');
  assert.equal(offers.isBehind(later, noOther, true), false);
});

test('room that a refused claim was to take goes to a later claim that did not fit beside it', (t) => {
  const { offers, underWay, take, claim } = openScene(t);
  take(1);
  const [first, second] = [claim(1), claim(1)];
  offers.add(first);
  offers.add(second);
  assert.deepEqual([...underWay], [first], 'only one of them fits');
  // Its client has left, so the claim is not written and waits no more; the fleet has not changed.
  underWay.delete(first);
  offers.offerRoom();
  assert.deepEqual([...underWay], [], 'nothing says that there is room');
  offers.noteEnded(first.promised);
  assert.deepEqual([...underWay], [second]);
});
