import assert from 'node:assert/strict';
import { type Amounts, slotOf } from './arena.ts';
import type { Query } from './server_process.ts';
import type { Race } from './writer.ts';

const overCapacity = `
  select p.uuid, i.resource_class_id, sum(a.used) as used from inventories i
  join resource_providers p on p.id = i.resource_provider_id
  join allocations a using (resource_provider_id, resource_class_id)
  group by i.id, p.id having sum(a.used) > (i.total - i.reserved) * i.allocation_ratio`;
const withoutInventory = `
  select a.* from allocations a
  left join inventories i using (resource_provider_id, resource_class_id) where i.id is null`;
const withoutProvider = `
  select * from allocations where resource_provider_id not in (select id from resource_providers)`;
const withoutConsumer = 'select * from allocations where consumer_id not in (select uuid from consumers)';
const withoutAllocations = 'select * from consumers where uuid not in (select consumer_id from allocations)';
const twice = `select consumer_id, resource_provider_id, resource_class_id, count(*) from allocations
  group by 1, 2, 3 having count(*) > 1`;
const wrongOwners = `select uuid from consumers c left join projects p on p.id = c.project_id
  left join users u on u.id = c.user_id where p.id is null or u.id is null`;

/** Checks rules that must always hold for the database while no write runs. */
export async function checkIntegrity(query: Query): Promise<void> {
  const rules = {
    overCapacity,
    withoutInventory,
    withoutProvider,
    withoutConsumer,
    withoutAllocations,
    twice,
    wrongOwners,
  };
  for (const [rule, statement] of Object.entries(rules)) {
    assert.deepEqual(await query(statement), [], `${rule} must find no row`);
  }
}

type Stored = { readonly amounts: Map<string, number>; readonly generation: number | null };

/** The allocations of every consumer in the database. */
export async function readHoldings(query: Query): Promise<ReadonlyMap<string, Stored>> {
  const rows = await query(`
    select a.consumer_id, c.generation, p.uuid as provider, r.name as class, a.used from allocations a
    join resource_providers p on p.id = a.resource_provider_id join resource_classes r on r.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id`);
  const holdings = new Map<string, Stored>();
  for (const row of rows) {
    const uuid = String(row.consumer_id);
    const stored = holdings.get(uuid) ?? {
      amounts: new Map<string, number>(),
      generation: row.generation as number | null,
    };
    stored.amounts.set(slotOf(String(row.provider), String(row.class)), Number(row.used));
    holdings.set(uuid, stored);
  }
  return holdings;
}

/** Tells the ledger whether a write with a lost answer was executed: completely, or not at all. */
export async function resolveUnknown(query: Query, { ledger }: Race): Promise<void> {
  const stored = await readHoldings(query);
  while (ledger.unknown[0] !== undefined) {
    const { request, before, after } = ledger.unknown[0];
    const now = request.wishes.map(({ uuid }) => show(stored.get(uuid)));
    const message = `${request.method} ${JSON.stringify(request.body)} must be written wholly or not at all`;
    const isWritten = now.every((each, index) => each === show(after[index]));
    if (!isWritten) assert.deepEqual(now, before.map(show), message);
    ledger.resolve(isWritten);
  }
}

/** Checks the database against the answers that the clients got. No write may run at the same time. */
export async function checkLedger(query: Query, race: Race): Promise<void> {
  const { ledger, shared, arena } = race;
  const stored = await readHoldings(query);
  for (const [uuid, holding] of ledger.holdings) {
    assert.equal(
      show(stored.get(uuid)),
      show(holding),
      `consumer ${uuid} must have the allocations of its last answer`,
    );
  }
  const sharedUuids = new Set([...shared.guarded, ...shared.open]);
  for (const uuid of sharedUuids) {
    const now = stored.get(uuid);
    const complaint = shared.complaint(uuid, now?.amounts ?? new Map(), now?.generation ?? null);
    assert.equal(complaint, undefined, `consumer ${uuid} ${complaint}`);
  }
  for (const uuid of stored.keys()) {
    assert.ok(ledger.holdings.has(uuid) || sharedUuids.has(uuid), `no answer was about consumer ${uuid}`);
  }
  for (const slot of arena.capacities.keys()) {
    const inLedger = total(
      [...ledger.holdings.values()].map(({ amounts }) => amounts),
      slot,
    );
    const ofShared = total(
      [...sharedUuids].map((uuid) => stored.get(uuid)?.amounts ?? new Map()),
      slot,
    );
    const inDatabase = total(
      [...stored.values()].map(({ amounts }) => amounts),
      slot,
    );
    assert.equal(inDatabase, inLedger + ofShared, `the sum of ${slot}`);
  }
}

const total = (all: readonly Amounts[], slot: string): number =>
  all.reduce((sum, amounts) => sum + (amounts.get(slot) ?? 0), 0);

const show = (holding: { readonly amounts: Amounts; readonly generation: number | null } | undefined): string =>
  holding === undefined ? '[[],null]' : JSON.stringify([[...holding.amounts].sort(), holding.generation]);
