/** A limited number of seats that clients share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFairSeats } from '../../src/queue/fair_seats.ts';
import { randomFrom, seedFor } from '../races/random.ts';

test('only the client with most seats loses a seat; a client is refused only if no other client has two seats more', (t) => {
  const random = randomFrom(seedFor(t));
  const most = 12;
  // What must be there: the clients that have a seat, the oldest first.
  let there: { readonly client: string; readonly id: number }[] = [];
  let lost: number[] = [];
  const seats = openFairSeats<number>({ most, onEvicted: (id) => lost.push(id) });
  const countOf = (client: string) => there.filter((each) => each.client === client).length;
  const greatest = () => Math.max(0, ...there.map(({ client }) => countOf(client)));
  let refused = 0;
  let displaced = 0;
  for (let id = 0; id < 5_000; id += 1) {
    // The clients are not equally greedy.
    const client = `c${random.below(random.below(6) + 1)}`;
    const what = random.below(100);
    if (what < 70) {
      const [own, before] = [countOf(client), greatest()];
      lost = [];
      const isTaken = seats.take(client, id);
      if (isTaken) {
        for (const each of lost) {
          const loser = there.find((other) => other.id === each)?.client ?? '';
          assert.equal(countOf(loser), before);
          assert.ok(before >= own + 2);
          assert.equal(there.findLast((other) => other.client === loser)?.id, each, 'the youngest one');
          there = there.filter((other) => other.id !== each);
          displaced += 1;
        }
        assert.ok(lost.length <= 1);
        there.push({ client, id });
      } else {
        assert.deepEqual(lost, []);
        assert.equal(there.length, most);
        assert.ok(before < own + 2);
        refused += 1;
      }
    } else if (what < 85) {
      const some = there[random.below(there.length)];
      if (some === undefined) continue;
      assert.ok(seats.leave(some.client, some.id));
      assert.ok(!seats.leave(some.client, some.id));
      there = there.filter(({ id: other }) => other !== some.id);
    } else {
      const next = seats.next();
      const taken = there.find(({ id: other }) => other === next);
      assert.equal(
        next,
        there.find(({ client: other }) => other === taken?.client)?.id,
        'the oldest one of its client',
      );
      there = there.filter(({ id: other }) => other !== next);
    }
    assert.equal(seats.size, there.length);
    assert.equal(seats.sizeOf(client), countOf(client));
  }
  assert.ok(refused > 0 && displaced > 0);
  assert.deepEqual(new Set(seats.clear()), new Set(there.map(({ id }) => id)));
  assert.equal(seats.size, 0);
});

test('clients take turns, however many each has', () => {
  const seats = openFairSeats<string>({ most: 100, onEvicted: () => {} });
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) seats.take(name.charAt(0), name);
  assert.deepEqual(
    Array.from({ length: 7 }, () => seats.next()),
    ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined],
  );
});

test('without seats no client gets one', () => {
  const seats = openFairSeats<string>({ most: 0, onEvicted: () => {} });
  assert.ok(!seats.take('a', 'a1'));
});
