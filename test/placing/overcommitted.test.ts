/**
 * Claims by query of consumers on providers of which more is used than the capacity: they may keep and reduce what they have, exactly
 * as claims that name the provider.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { judge } from '../../src/claims/judge.ts';
import { onCertainFleet } from '../../src/claims/placing.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import type { OrderKey } from '../../src/search/request.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { fleetOf, nodeAt, providerUuid, type Stock, stockOf } from '../candidates/topology.ts';
import { consumerClaim, consumerState, queriesOf } from '../support/claims.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, newClaim, type Send } from '../support/requests.ts';
import { errorOf, placed, providersOf, withHosts } from './placed.ts';

type Amounts = Readonly<Record<string, number>>;
/** The classes of the made-up hosts, by their ids. */
const classIds = { VCPU: 1, MEMORY_MB: 2 } as const;
const own = providerUuid(0);

const stateOf = (uuid: string, held: Amounts): ConsumerState =>
  consumerState(
    uuid,
    Object.entries(classIds).flatMap(([name, classId]) =>
      (held[name] ?? 0) > 0 ? [{ id: classId, providerId: 1, classId, used: held[name] ?? 0 }] : [],
    ),
  );

const queryOf = (resources: Amounts, order: readonly OrderKey[], inTree: string | undefined) =>
  queriesOf(requestOf([groupOf('', resources, { inTree: inTree === undefined ? undefined : [inTree] })], { order }));

const isAllowed = (...parameters: Parameters<typeof judge>): boolean => {
  try {
    judge(...parameters);
    return true;
  } catch (error) {
    if (error instanceof ClaimRefused) return false;
    throw error;
  }
};

const amounts = fc.record(
  { VCPU: fc.integer({ min: 1, max: 4 }), MEMORY_MB: fc.integer({ min: 1, max: 4 }) },
  { requiredKeys: ['VCPU'] },
);
const stock: fc.Arbitrary<Stock> = fc.record({
  total: fc.integer({ min: 1, max: 9 }),
  reserved: fc.nat(2),
  min_unit: fc.constantFrom(1, 1, 1, 2),
  max_unit: fc.constantFrom(8, 8, 8, 3),
  step_size: fc.constantFrom(1, 1, 1, 2),
  allocation_ratio: fc.constantFrom(0.5, 0.9, 1, 1),
  used: fc.constant(0),
});
const keys = fc.constantFrom<readonly OrderKey[]>(
  [],
  [{ kind: 'free', className: 'VCPU', mostFirst: false }],
  [{ kind: 'free', className: 'VCPU', mostFirst: true }],
  [{ kind: 'free', className: 'MEMORY_MB', mostFirst: false }],
);

test('consumers are placed in place by query exactly if a claim may give them as much there', () => {
  const seen = { placed: 0, refused: 0, beyond: 0, 'refused beyond': 0 };
  const consumers = fc.array(
    fc.record({
      held: fc.option(amounts, { nil: {} as Amounts }),
      wanted: fc.option(amounts, { nil: undefined, freq: 6 }),
      isByQuery: fc.boolean(),
      order: keys,
    }),
    { minLength: 1, maxLength: 3 },
  );
  fc.assert(
    fc.property(
      stock,
      stock,
      amounts,
      consumers,
      fc.integer({ min: 1, max: 40 }),
      (cpu, memory, ofOthers, wanted, hosts) => {
        const stocks = { VCPU: cpu, MEMORY_MB: memory };
        const [first, ...rest] = wanted;
        fc.pre(first?.wanted !== undefined);
        const parts = [{ ...first, isByQuery: true }, ...rest];
        const usedOf = (name: keyof typeof classIds) =>
          (ofOthers[name] ?? 0) + parts.reduce((sum, { held }) => sum + (held[name] ?? 0), 0);
        const node = nodeAt(0, {
          stock: {
            VCPU: { ...cpu, used: usedOf('VCPU') },
            MEMORY_MB: { ...memory, used: usedOf('MEMORY_MB') },
          },
        });
        const full = { VCPU: { ...stockOf(9), used: 9 }, MEMORY_MB: { ...stockOf(9), used: 9 } };
        const fleet = fleetOf([
          node,
          ...Array.from({ length: hosts - 1 }, (_, index) => nodeAt(index + 1, { stock: full })),
        ]);
        const states = new Map(parts.map(({ held }, index) => [`c${index}`, stateOf(`c${index}`, held)]));
        const plain = parts.map(({ wanted = {} }, index) => {
          const named = Object.keys(wanted).length === 0 ? [] : [[own, new Map(Object.entries(wanted))] as const];
          return consumerClaim(`c${index}`, { allocations: new Map(named) });
        });
        const byQuery = parts.map(({ wanted, isByQuery, order }, index) =>
          isByQuery && wanted !== undefined
            ? consumerClaim(`c${index}`, queryOf(wanted, order, order.length === 0 ? own : undefined))
            : (plain[index] ?? consumerClaim('', {})),
        );
        const placing = byQuery.flatMap(({ queries }, index) => (queries === undefined ? [] : [index]));

        const expected =
          parts.every(({ wanted = {} }) =>
            Object.entries(wanted).every(([name, amount = 0]) => {
              const { min_unit, max_unit, step_size } = stocks[name as keyof typeof classIds]; // as `amounts` has it
              return amount >= min_unit && amount <= max_unit && amount % step_size === 0;
            }),
          ) &&
          Object.entries(stocks).every(([key, { total, reserved, allocation_ratio }]) => {
            const name = key as keyof typeof classIds; // as `stocks` has it
            const wanted = parts.map((part) => part.wanted?.[name] ?? 0).reduce((sum, each) => sum + each, 0);
            if (wanted === 0) return true;
            const held = parts.map((part) => part.held[name] ?? 0).reduce((sum, each) => sum + each, 0);
            return (ofOthers[name] ?? 0) + wanted <= (total - reserved) * allocation_ratio || wanted <= held;
          });
        const usage = usageOf(fleet);
        assert.equal(isAllowed(fleet, { consumers: plain, inventories: [] }, states), expected);
        assert.equal(isAllowed(fleet, { consumers: byQuery, inventories: [], placing }, states), expected);
        assert.deepEqual(usageOf(fleet), usage);
        const isBeyond = Object.entries(stocks).some(
          ([key, { total, reserved, allocation_ratio }]) =>
            usedOf(key as keyof typeof classIds) > (total - reserved) * allocation_ratio, // as `stocks` has it
        );
        seen[expected ? 'placed' : 'refused'] += 1;
        if (isBeyond) seen[expected ? 'beyond' : 'refused beyond'] += 1;
      },
    ),
    { numRuns: 3000 },
  );
  for (const [what, times] of Object.entries(seen)) assert.ok(times > 100, `${what}: ${times}`);
});

/** All that a fleet shows of usage and capacity. */
const usageOf = ({ byId, tolerating }: Fleet) => [
  tolerating.size,
  ...[...byId.values()].map(({ inventories }) => inventories.map(({ used, fields }) => [used, { ...fields }])),
];

for (const [name, order] of Object.entries<readonly OrderKey[]>({
  'no order': [],
  'least first': [{ kind: 'free', className: 'VCPU', mostFirst: false }],
  'most first': [{ kind: 'free', className: 'VCPU', mostFirst: true }],
  'a trait first': [{ kind: 'prefer', traitName: 'CUSTOM_FAST' }],
})) {
  test(`among thousands of full hosts a consumer finds its own host, by ${name}`, () => {
    // Of every host 8 are used, of its own one more than there are.
    const nodes = Array.from({ length: 3000 }, (_, index) =>
      nodeAt(index, { stock: { VCPU: { ...stockOf(index === 0 ? 7 : 8), max_unit: 8, used: 8 } } }),
    );
    const fleet = fleetOf(nodes);
    const place = (amount: number) => {
      const consumer = consumerClaim('c0', queryOf({ VCPU: amount }, order, undefined));
      const claim: Claim = { consumers: [consumer], inventories: [], placing: [0] };
      return judge(fleet, claim, new Map([['c0', stateOf('c0', { VCPU: 4 })]]), onCertainFleet);
    };
    // The second time the lists of trees exist already.
    for (const amount of [4, 4, 3, 2]) {
      assert.deepEqual(
        place(amount).usageChanges.map(({ provider, freed, wanted }) => [provider.uuid, freed, wanted]),
        [[own, 4, amount]],
      );
    }
    assert.throws(() => place(5), ClaimRefused);
  });
}

/** Lowers how much a host has of VCPU, and maybe reserves some. */
async function shrink(send: Send, host: string, total: number, reserved = 0): Promise<void> {
  const path = `/resource_providers/${host}/inventories/VCPU`;
  const resource_provider_generation = at((await send('GET', path)).json, 'resource_provider_generation');
  accepted(await send('PUT', path, { resource_provider_generation, total, reserved }));
}

test('on an overcommitted host a consumer may keep or reduce its amounts, and not raise them', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    const [consumer, other] = [randomUUID(), randomUUID()];
    for (const uuid of [consumer, other])
      accepted(await send('PUT', `/allocations/${uuid}`, newClaim({ [host]: { VCPU: 4, MEMORY_MB: 10 } })));
    await shrink(send, host, 6);
    const put = (query: unknown, more: object = {}) =>
      send('PUT', `/allocations/${consumer}`, { ...placed(query, generation), ...more });
    let generation = 1;
    const raised = await put('resources=VCPU:5');
    assert.equal(errorOf(raised).code, 'placement.no_candidates');
    assert.match(errorOf(raised).detail, /no tree meets resources=VCPU:5\./);
    for (const query of [
      'resources=VCPU:4,MEMORY_MB:20',
      `resources=VCPU:4&with=${consumer}`,
      `resources=VCPU:4&in_tree=${host}&order=free:VCPU`,
      'resources=VCPU:4&order=-free:MEMORY_MB,free:VCPU',
      ['resources=VCPU:5', 'resources=VCPU:4'],
      'resources1=VCPU:3&resources2=VCPU:1&group_policy=none',
      'resources=VCPU:3',
    ]) {
      const tried = await put(query, { dry_run: true });
      const written = accepted(await put(query));
      assert.deepEqual([tried.status, tried.json], [200, written.json]);
      assert.deepEqual(providersOf(written.json), [host]);
      generation += 1;
    }
    // Now it has 3, of 7 that are used.
    assert.equal((await put('resources=VCPU:4', { dry_run: true })).status, 409);
    assert.equal((await put('resources=VCPU:4')).status, 409);
    const left = await put(`resources=VCPU:3&apart_from=${consumer}`);
    assert.equal(errorOf(left).code, 'placement.no_candidates');
    const gang = await send('POST', '/allocations', {
      [consumer]: placed('resources=VCPU:2', generation),
      [other]: placed('resources=VCPU:5', 1),
    });
    assert.equal(accepted(gang).status, 200);
    const more = await send('POST', '/allocations', {
      [consumer]: placed('resources=VCPU:2', generation + 1),
      [other]: placed('resources=VCPU:6', 2),
    });
    assert.equal(errorOf(more).code, 'placement.no_candidates');
    assert.deepEqual(at((await send('GET', `/resource_providers/${host}/usages`)).json, 'usages', 'VCPU'), 7);
  });
});

test('an Ironic node that is reserved keeps its instance, and takes no other', async () => {
  await withHosts(anyEngine, 2, async (send, [node = '', another = '']) => {
    const instance = randomUUID();
    await shrink(send, another, 8, 8);
    accepted(await send('PUT', `/allocations/${instance}`, newClaim({ [node]: { VCPU: 8 } })));
    await shrink(send, node, 8, 8);
    const query = 'resources=VCPU:8';
    const kept = accepted(await send('PUT', `/allocations/${instance}`, placed(query, 1)));
    assert.deepEqual(providersOf(kept.json), [node]);
    assert.equal(
      errorOf(await send('PUT', `/allocations/${randomUUID()}`, placed(query))).code,
      'placement.no_candidates',
    );
    const { json } = accepted(await send('GET', `/allocation_candidates?${query}&with=${instance}`));
    assert.deepEqual(at(json, 'allocation_requests'), [], 'a query for candidates does not know for which consumer');
  });
});

test('where another program lowers the capacity, a consumer may keep its amounts, and not raise them', async () => {
  await withHosts(anyEngine, 1, async (send, [host = ''], { database }) => {
    accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 4 } })));
    for (const raised of [0, 1]) {
      for (const [amount, code] of [
        [5, 'placement.no_candidates'],
        [4, undefined],
      ] as const) {
        const consumer = randomUUID();
        accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 4 } })));
        // The fleet in memory does not show it.
        await sql`update inventories set total = 6 where total = 8`.execute(database.kysely);
        await sql`update resource_providers set generation = generation + ${raised}`.execute(database.kysely);
        const answer = await send('PUT', `/allocations/${consumer}`, placed(`resources=VCPU:${amount}`, 1));
        assert.equal(errorOf(answer).code, code, answer.text);
        accepted(await send('DELETE', `/allocations/${consumer}`));
        await sql`update inventories set total = 8 where total = 6`.execute(database.kysely);
      }
    }
  });
});
