import type { FleetRows, InventoryRow } from '../../../db/fleet/rows.ts';
import { earlierGeneration, laterGeneration } from '../../../db/statements/generations.ts';
import type { DoneWrite } from '../../../db/statements/providers/provider_write.ts';
import { type Fleet, noteChange } from './fleet.ts';
import { type FieldsOfClass, inventoryOf, type Provider, rowOf } from './provider.ts';

/** A committed write of this process that the fleet shows before a refresh reads it. */
export type OwnWrite = {
  /** The transaction, as PostgreSQL's text form of `xid8`. */
  readonly xid: string;
  readonly effects: readonly Effect[];
  /** Its writes of providers. */
  readonly providers?: readonly DoneWrite[];
};

/** By how much a write raised the generation of a provider, and its usages by class id. */
export type Effect = {
  readonly providerId: number;
  readonly bump: number;
  readonly used: readonly { readonly classId: number; readonly delta: number }[];
};

/** Adds the effects of a write to the fleet, or removes them. */
export function showEffects(fleet: Fleet, { effects }: Pick<OwnWrite, 'effects'>, sign: 1 | -1): void {
  for (const { providerId, bump, used } of effects) {
    const provider = fleet.byId.get(providerId);
    if (provider === undefined) continue;
    provider.generation = (sign === 1 ? laterGeneration : earlierGeneration)(provider.generation, bump);
    noteChange(fleet, provider);
    for (const { classId, delta } of used) {
      const inventory = inventoryOf(provider, classId);
      if (inventory !== undefined) inventory.used += sign * delta;
    }
  }
}

/**
 * The rows of providers after some writes, made from the rows that the fleet shows. A refresh reads the same rows, unless other
 * transactions write the providers as well.
 *
 * @returns undefined if the writes do not match the fleet: it has not read the changes of other transactions yet
 */
export function rowsAfter(fleet: Fleet, writes: readonly DoneWrite[]): FleetRows | undefined {
  const each = writes.map((done) => rowsOfWrite(fleet, done));
  const rows = each.filter((of) => of !== undefined);
  return rows.length < each.length ? undefined : together(rows);
}

/** The rows of some providers as the fleet shows them; of a provider that it lacks there are none. */
export const rowsOf = (fleet: Fleet, ids: readonly number[]): FleetRows =>
  together(
    ids.flatMap((id) => {
      const provider = fleet.byId.get(id);
      return provider === undefined ? [] : { ...partsOf(provider), providers: [rowOf(provider)] };
    }),
  );

const together = (rows: readonly FleetRows[]): FleetRows => ({
  providers: rows.flatMap(({ providers }) => providers),
  inventories: rows.flatMap(({ inventories }) => inventories),
  traits: rows.flatMap(({ traits }) => traits),
  aggregates: rows.flatMap(({ aggregates }) => aggregates),
});

function rowsOfWrite(
  fleet: Fleet,
  { write, id, generation, parentId, rootId, seconds }: DoneWrite,
): FleetRows | undefined {
  if (write.kind === 'root' || write.kind === 'child') {
    const { uuid, name } = write;
    const isFree = [fleet.byUuid.get(uuid), fleet.byName.get(name)].every((found) => (found?.id ?? id) === id);
    // Another process may have moved the parent.
    if (!isFree || (parentId !== null && fleet.byId.get(parentId)?.root.id !== rootId)) return undefined;
    const updated = write.kind === 'root' ? seconds : null; // see createRoots
    const providers = [{ id, uuid, name, generation: generation ?? 0, parent: parentId, created: seconds, updated }];
    return { providers, inventories: [], traits: [], aggregates: [] };
  }
  const provider = fleet.byId.get(id);
  // An empty name may stand for null in the database.
  if (provider?.uuid !== write.uuid || provider.name === '') return undefined;
  const row = { ...rowOf(provider), generation: generation ?? provider.generation };
  const shown = partsOf(provider);
  if (write.kind === 'last aggregates') return { ...shown, providers: [row], aggregates: membership(provider, write) };
  const providers = [{ ...row, updated: seconds }];
  if (write.kind === 'aggregates') return { ...shown, providers, aggregates: membership(provider, write) };
  if (write.kind === 'traits')
    return { ...shown, providers, traits: write.traits.map((trait) => ({ provider: id, trait: trait.id })) };
  const changed = new Set([...write.put.map(({ classId }) => classId), ...write.remove]);
  const put = write.put.map((fields) => ({
    ...inventoryRow(id, fields),
    used: inventoryOf(provider, fields.classId)?.used ?? 0,
    modified: seconds,
  }));
  const kept = shown.inventories.filter((inventory) => !changed.has(inventory.class));
  return { ...shown, providers, inventories: [...put, ...kept] };
}

/** Keeps the order of the database if no aggregate is new: then a refresh does not read the provider again. */
const membership = (provider: Provider, { uuids }: { readonly uuids: readonly string[] }): FleetRows['aggregates'] => {
  const kept = provider.aggregates.filter((uuid) => uuids.includes(uuid));
  return aggregatesOf(provider.id, [...kept, ...uuids.filter((uuid) => !kept.includes(uuid))]);
};

const partsOf = ({ id, inventories, traitIds, aggregates }: Provider): Omit<FleetRows, 'providers'> => ({
  inventories: inventories.map(({ fields, used, modifiedAtSeconds }) => ({
    ...inventoryRow(id, fields),
    used,
    modified: modifiedAtSeconds,
  })),
  traits: traitIds.map((trait) => ({ provider: id, trait })),
  aggregates: aggregatesOf(id, aggregates),
});

const inventoryRow = (provider: number, fields: FieldsOfClass): Omit<InventoryRow, 'used' | 'modified'> => ({
  provider,
  class: fields.classId,
  total: fields.total,
  reserved: fields.reserved,
  min_unit: fields.minUnit,
  max_unit: fields.maxUnit,
  step_size: fields.stepSize,
  allocation_ratio: fields.allocationRatio,
});

const aggregatesOf = (provider: number, uuids: readonly string[]): FleetRows['aggregates'] =>
  uuids.map((aggregate) => ({ provider, aggregate }));
