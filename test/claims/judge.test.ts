import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { type Claim, ClaimRefused, type ConsumerClaim } from '../../src/claims/claim.ts';
import { judge } from '../../src/claims/judge.ts';
import { onCertainFleet } from '../../src/claims/placing.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { openOverlay } from '../../src/fleet/model/overlay.ts';
import { allocationsTag, parseIfMatch } from '../../src/placement/entity_tag.ts';
import { inventoryDefaults } from '../../src/placement/inventory.ts';
import { fleetOf, nodeAt, providerUuid, type Stock, stockOf } from '../candidates/topology.ts';
import { consumerClaim, consumerState } from '../support/claims.ts';

const some = (more: Partial<Stock> = {}): Stock => ({ ...stockOf(10), ...more });

const [host, disk, empty] = [0, 1, 2].map(providerUuid) as [string, string, string];

/** A host, a disk, and a provider without inventories. Their ids are 1, 2 and 3. The classes have the same ids. */
const fleetWith = (cpu: Partial<Stock> = {}): Fleet =>
  fleetOf([
    nodeAt(0, { stock: { VCPU: some(cpu), MEMORY_MB: some() } }),
    nodeAt(1, { stock: { DISK_GB: some() } }),
    nodeAt(2),
  ]);

type Wanted = Readonly<Record<string, Readonly<Record<string, number>>>>;

const consumer = (wanted: Wanted, more: Partial<ConsumerClaim> = {}): ConsumerClaim =>
  consumerClaim('c1', {
    allocations: new Map(Object.entries(wanted).map(([uuid, amounts]) => [uuid, new Map(Object.entries(amounts))])),
    ...more,
  });

const claimOf = (...consumers: ConsumerClaim[]): Claim => ({ consumers, inventories: [] });

/** What the consumer has before the claim: amounts of VCPU on the host. */
const having = (used: number, generation: number | null = 3): ReadonlyMap<string, ConsumerState> => {
  const allocations = [{ id: 1, providerId: 1, classId: 1, used }];
  return new Map([['c1', consumerState('c1', allocations, { id: generation === null ? null : 1, generation })]]);
};

const owner = { projectId: 'project', userId: 'user' };

const noConsumers: ReadonlyMap<string, ConsumerState> = new Map();

const judged = (fleet: Fleet, claim: Claim, states = noConsumers) => judge(fleet, claim, states);

function refusalOf(...parameters: Parameters<typeof judged>): string {
  try {
    judged(...parameters);
  } catch (error) {
    if (error instanceof ClaimRefused) return `${error.reason}: ${error.message}`;
    throw error;
  }
  return 'none';
}

suite('judging a claim', () => {
  test('a claim is refused in the order of upstream: the first fault hides the later ones', () => {
    const fleet = fleetWith({ max_unit: 4, total: 3 });
    const wrongReshape = (uuid: string, generation: number, name: string) => ({
      providerUuid: uuid,
      knownGeneration: generation,
      inventories: new Map([[name, { total: 1, ...inventoryDefaults }]]),
    });
    const all = {
      ...claimOf(
        consumer({ [host]: { VCPU: 5 } }, { knownGeneration: 7 }),
        consumer({ unknown: { VCPU: 1 }, [host]: { CUSTOM_NONE: 1 } }, { uuid: 'c2' }),
      ),
      inventories: [wrongReshape(host, 9, 'CUSTOM_NONE'), wrongReshape('unknown', 0, 'VCPU')],
    };
    assert.match(refusalOf(fleet, { ...all, inventories: all.inventories.slice(1) }), /^unknown inventory provider:/);
    assert.match(
      refusalOf(fleet, { ...all, inventories: [wrongReshape(host, 9, 'CUSTOM_NONE')] }),
      /^provider generation:/,
    );
    assert.match(refusalOf(fleet, { ...all, inventories: [wrongReshape(host, 0, 'CUSTOM_NONE')] }), /^unknown class:/);
    const later = { ...all, inventories: [] };
    assert.equal(
      refusalOf(fleet, later),
      'consumer generation: consumer generation conflict - expected null but got 7',
    );
    const [first, second] = all.consumers;
    assert.ok(first && second);
    const known = { ...first, knownGeneration: null };
    assert.equal(
      refusalOf(fleet, claimOf(known, second)),
      "unknown provider: Allocation for resource provider 'unknown' that does not exist.",
    );
    const unknownClass = consumer({ [host]: { CUSTOM_NONE: 1 } }, { uuid: 'c2' });
    assert.equal(refusalOf(fleet, claimOf(known, unknownClass)), 'unknown class: No such resource class CUSTOM_NONE.');
    // A provider without any of the classes is reported before units and capacity of other providers.
    const onNothing = consumer({ [empty]: { VCPU: 1 } }, { uuid: 'c2' });
    assert.equal(
      refusalOf(fleet, claimOf(known, onNothing)),
      `invalid inventory: Inventory for 'VCPU' on resource provider '${empty}' invalid.`,
    );
    assert.match(refusalOf(fleet, claimOf(known)), /would violate inventory constraints\.$/);
    assert.match(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 4 } }))), /would exceed the capacity\.$/);
    assert.equal(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 3 } }))), 'none');
  });

  test('a class that only another of the providers has is an invalid inventory, at its place in the order', () => {
    const claim = claimOf(consumer({ [host]: { VCPU: 1, DISK_GB: 1 }, [disk]: { DISK_GB: 1 } }));
    assert.equal(
      refusalOf(fleetWith(), claim),
      `invalid inventory: Inventory for 'DISK_GB' on resource provider '${host}' invalid.`,
    );
    assert.match(refusalOf(fleetWith({ total: 1, used: 1 }), claim), /'VCPU'.*would exceed the capacity/);
  });

  test('the present allocations of the consumer are freed first', () => {
    const fleet = fleetWith({ used: 10 });
    assert.match(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 1 } }))), /exceed/);
    assert.equal(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 6 } })), having(6)), 'none');
    assert.match(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 7 } })), having(6)), /exceed/);
  });

  test('beyond capacity a claim may keep or reduce its amount, but not raise it', () => {
    const fleet = fleetWith({ total: 5, used: 9 });
    assert.equal(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 4 } })), having(4)), 'none');
    assert.equal(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 3 } })), having(4)), 'none');
    assert.match(refusalOf(fleet, claimOf(consumer({ [host]: { VCPU: 5 } })), having(4)), /exceed/);
    // Moving an amount from one consumer to another does not raise the sum either.
    const moving = claimOf(consumer({}), consumer({ [host]: { VCPU: 4 } }, { uuid: 'c2' }));
    assert.equal(refusalOf(fleet, moving, having(4)), 'none');
  });

  test('on a fleet that may lack a provider, allocations of such a provider match no entity tag', () => {
    const [state] = having(2).values();
    assert.ok(state !== undefined);
    const tag = allocationsTag({
      ...owner,
      allocations: new Map([[host, new Map([['VCPU', 2]])]]),
      consumerType: null,
    });
    const expected = { ifMatch: parseIfMatch(tag) ?? [], incompleteOwner: owner };
    const claim = claimOf(consumer({ [host]: { VCPU: 3 } }, { expected }));
    const uncertain = { ...onCertainFleet, isCertain: false };
    judge(fleetWith({ used: 2 }), claim, new Map([['c1', state]]), uncertain);
    const more = [...state.allocations, { id: 2, providerId: 99, classId: 1, used: 1 }];
    assert.throws(
      () => judge(fleetWith({ used: 2 }), claim, new Map([['c1', { ...state, allocations: more }]]), uncertain),
      (error) => error instanceof ClaimRefused && error.reason === 'unmatched consumer',
    );
  });

  test('amounts that are promised to other claims of the batch are not free any more', () => {
    const fleet = fleetWith();
    const provider = fleet.byUuid.get(host);
    assert.ok(provider);
    const claim = claimOf(consumer({ [host]: { VCPU: 4 } }));
    const promised = openOverlay(fleet);
    promised.add([{ provider, classId: 1, amount: 6 }]);
    assert.equal(refusalOf(fleet, claim), 'none');
    promised.add([{ provider, classId: 1, amount: 1 }]);
    assert.match(refusalOf(fleet, claim), /exceed/);
    promised.hide();
    assert.equal(refusalOf(fleet, claim), 'none');
  });

  test('all consumers of a claim are accepted together, or none', () => {
    const fleet = fleetWith();
    const both = (second: number) =>
      claimOf(consumer({ [host]: { VCPU: 6 } }), consumer({ [host]: { VCPU: second } }, { uuid: 'c2' }));
    assert.equal(refusalOf(fleet, both(4)), 'none');
    assert.match(refusalOf(fleet, both(5)), /exceed/);
  });

  test('the judgement is right about capacity for any inventory, present usage and requested amount', () => {
    const stock = fc.record({
      total: fc.integer({ min: 1, max: 12 }),
      reserved: fc.nat(3),
      allocation_ratio: fc.constantFrom(0.5, 0.9, 1, 2),
      min_unit: fc.integer({ min: 1, max: 2 }),
      max_unit: fc.integer({ min: 3, max: 10 }),
      step_size: fc.constantFrom(1, 1, 2),
    });
    const counts = { refused: 0, accepted: 0 };
    fc.assert(
      fc.property(
        stock,
        fc.nat(10),
        fc.nat(6),
        fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 3 }),
        (stock, others, own, wishes) => {
          const fleet = fleetWith({ ...stock, used: others + own });
          const consumers = wishes.map((used, index) =>
            consumer({ [host]: { VCPU: used } }, { uuid: `c${index + 1}` }),
          );
          const states = own === 0 ? noConsumers : having(own);
          const freed = wishes.length > 0 ? own : 0;
          let sum = 0;
          const fits = wishes.every((wish) => {
            sum += wish;
            const units = wish >= stock.min_unit && wish <= stock.max_unit && wish % stock.step_size === 0;
            const after = others + own - freed + sum;
            const capacity = (stock.total - stock.reserved) * stock.allocation_ratio;
            return units && (after <= capacity || (others + own > 0 && after <= others + own));
          });
          counts[fits ? 'accepted' : 'refused']++;
          assert.equal(refusalOf(fleet, claimOf(...consumers), states) === 'none', fits);
        },
      ),
      { numRuns: 2000 },
    );
    assert.ok(counts.refused > 200 && counts.accepted > 200, JSON.stringify(counts));
  });
});

suite('what a claim that is accepted writes', () => {
  test('the generation of each provider that a claim names grows by one, and is guarded', () => {
    const claim = claimOf(
      consumer({ [host]: { VCPU: 1, MEMORY_MB: 1 }, [disk]: { DISK_GB: 1 } }),
      consumer({ [host]: { VCPU: 1 } }, { uuid: 'c2' }),
    );
    assert.deepEqual(judged(fleetWith(), claim).providers, [
      { providerId: 1, generation: 0, bump: 1 },
      { providerId: 2, generation: 0, bump: 1 },
    ]);
  });

  test('a provider that the claim leaves keeps its generation, unless the claim is empty', () => {
    const elsewhere = judged(fleetWith({ used: 2 }), claimOf(consumer({ [disk]: { DISK_GB: 1 } })), having(2));
    assert.deepEqual(
      elsewhere.providers.map(({ providerId }) => providerId),
      [2],
    );
    const nowhere = judged(fleetWith({ used: 2 }), claimOf(consumer({})), having(2));
    assert.deepEqual(nowhere.providers, [{ providerId: 1, generation: 0, bump: 1 }]);
  });

  test('a reshape raises the generation by two, or by one if no inventory is left', () => {
    const inventories = (names: readonly string[]) => [
      {
        providerUuid: disk,
        knownGeneration: 0,
        inventories: new Map(names.map((name) => [name, { total: 1, ...inventoryDefaults }])),
      },
    ];
    const put = judged(fleetWith(), { consumers: [], inventories: inventories(['VCPU', 'DISK_GB']) });
    assert.deepEqual(put.providers, [{ providerId: 2, generation: 0, bump: 2 }]);
    assert.deepEqual(
      put.inventories[0]?.put.map(({ classId }) => classId),
      [1, 3],
    );
    const removed = judged(fleetWith(), { consumers: [], inventories: inventories([]) });
    assert.deepEqual(removed.providers, [{ providerId: 2, generation: 0, bump: 1 }]);
    assert.deepEqual(removed.inventories, [{ providerId: 2, put: [], remove: [3] }]);
  });

  test('a reshape can delete an inventory together with its last allocation, but not before', () => {
    const gone = [
      {
        providerUuid: host,
        knownGeneration: 0,
        inventories: new Map([['MEMORY_MB', { total: 1, ...inventoryDefaults }]]),
      },
    ];
    const moving = { consumers: [consumer({ [disk]: { DISK_GB: 1 } })], inventories: gone };
    assert.equal(refusalOf(fleetWith({ used: 2 }), moving, having(2)), 'none');
    assert.equal(
      refusalOf(fleetWith({ used: 3 }), moving, having(2)),
      `inventory in use: Inventory for 'VCPU' on resource provider '${host}' in use.`,
    );
  });

  test('allocations of a reshape are checked against its new inventories', () => {
    const bring = (total: number) => [
      { providerUuid: empty, knownGeneration: 0, inventories: new Map([['VCPU', { total, ...inventoryDefaults }]]) },
    ];
    const claim = (total: number) => ({ consumers: [consumer({ [empty]: { VCPU: 2 } })], inventories: bring(total) });
    assert.equal(refusalOf(fleetWith(), claim(2)), 'none');
    assert.match(refusalOf(fleetWith(), claim(1)), /exceed/);
  });

  test('a consumer without allocations before and after the claim is not written', () => {
    assert.deepEqual(judged(fleetWith(), claimOf(consumer({}))).consumers, []);
    const known = judged(fleetWith({ used: 2 }), claimOf(consumer({})), having(2));
    assert.deepEqual(
      known.consumers.map(({ uuid, generation, allocations }) => ({ uuid, generation, allocations })),
      [{ uuid: 'c1', generation: 3, allocations: [] }],
    );
    const old = judged(fleetWith({ used: 2 }), claimOf(consumer({})), having(2, null));
    assert.deepEqual(
      old.consumers.map(({ generation, hasOldAllocations }) => ({ generation, hasOldAllocations })),
      [{ generation: null, hasOldAllocations: true }],
    );
  });
});
