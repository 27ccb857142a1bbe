/** Long answers that are made in turns have the very bytes of those that are made in one piece. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ProviderAllocationRow } from '../../db/statements/claims/read_allocations.ts';
import { providerAllocationEndpoints } from '../../src/api/allocations/of_provider.ts';
import type { Dependencies } from '../../src/api/dependencies.ts';
import type { ApiRequest } from '../../src/rest/endpoint.ts';
import { inOrderOfMembers, listInTurns, shortListItems } from '../../src/rest/made_in_turns.ts';
import { turnsThatEnd } from '../support/chunks.ts';

/** Turns that are over at each question, and how often they were passed. */
function countedTurns() {
  let passes = 0;
  const pass = async () => {
    passes += 1;
  };
  return { turns: () => ({ ...turnsThatEnd(() => true), pass }), passes: () => passes };
}

const textOf = (body: unknown): string => {
  if (typeof body === 'string') return body;
  assert.ok(body instanceof Uint8Array, 'so little is one chunk');
  return Buffer.from(body).toString();
};

const key = fc.oneof(
  fc.uuid(),
  fc.nat({ max: 30 }).map(String),
  fc.constantFrom('__proto__', '', '007', '-1', '4294967294', '4294967295', '99999999999', 'ä"\\', 'constructor'),
);

test('the members of an object are in the order of JSON.stringify', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.nat())), (pairs) => {
      const members = new Map(pairs);
      const text = Array.from(inOrderOfMembers(members), ([name, value]) => `${JSON.stringify(name)}:${value}`).join();
      assert.equal(`{${text}}`, JSON.stringify(Object.fromEntries(members)));
    }),
    { numRuns: 1000 },
  );
});

test('a list has each of its items, and other requests have a turn after each item, unless the list is short', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 2 * shortListItems, size: 'max' }),
      fc.jsonValue(),
      async (items, more) => {
        const { turns, passes } = countedTurns();
        const { body } = await listInTurns({ turns }, 'things', items, (item) => JSON.stringify(item), [
          ['more', JSON.stringify(more)],
        ]);
        assert.equal(textOf(body), JSON.stringify({ things: items, more }));
        assert.equal(passes(), items.length <= shortListItems ? 0 : items.length);
      },
    ),
    { numRuns: 500 },
  );
});

const row: fc.Arbitrary<ProviderAllocationRow> = fc.record({
  provider_uuid: fc.constant('pool'),
  provider_generation: fc.constant(7),
  consumer_uuid: key,
  class_name: fc.constantFrom('VCPU', 'DISK_GB', '3'),
  used: fc.nat(),
  modified: fc.option(fc.nat()),
  consumer_generation: fc.option(fc.nat()),
  former_generations: fc.nat(3),
  consumer_name: fc.option(fc.string()),
});

test('the allocations on a provider match its rows, and other requests have a turn after each row, unless there are few', async () => {
  const [endpoint] = providerAllocationEndpoints;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 2 * shortListItems, size: 'max' }),
      fc.constantFrom(1000, 1027, 1028, 1039),
      async (rows, version) => {
        const { turns, passes } = countedTurns();
        const request = { version, turns, param: () => 'pool' } as unknown as ApiRequest; // no more of it is used
        const dependencies = {
          allocationReads: { onProvider: async () => rows },
          fleet: {},
        } as unknown as Dependencies;
        const answer = await endpoint?.handle(request, dependencies);
        const byConsumer = Map.groupBy(rows, (each) => each.consumer_uuid ?? '');
        const allocations = Object.fromEntries(
          Array.from(byConsumer, ([uuid, own]) => [
            uuid,
            {
              resources: Object.fromEntries(own.map((each) => [each.class_name, each.used])),
              ...(version < 1028 ? {} : { consumer_generation: own[0]?.consumer_generation }),
            },
          ]),
        );
        assert.equal(textOf(answer?.body), JSON.stringify({ allocations, resource_provider_generation: 7 }));
        assert.equal(passes(), rows.length <= shortListItems ? 0 : rows.length + byConsumer.size);
      },
    ),
    { numRuns: 500 },
  );
});
