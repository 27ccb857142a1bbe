import type { FleetRows, InventoryRow } from '../../db/fleet/rows.ts';
import { type InventoryFields, usableRatio } from '../placement/inventory.ts';
import { interning } from './interned.ts';
import type { Inventory, Provider } from './provider.ts';

/** The parts of a provider: its inventories, traits and aggregates. */
export type ProviderParts = Pick<Provider, 'id' | 'inventories' | 'traitIds' | 'aggregates'>;

/** @returns a function that collects the parts of providers from rows; equal parts share one object */
export function partsReader(): (rows: FleetRows) => Generator<ProviderParts> {
  const internedFields = interning<InventoryFields>();
  const internedTraits = interning<readonly number[]>();
  const internedAggregates = interning<readonly string[]>();

  const inventoryFrom = (row: InventoryRow): Inventory => {
    const { total, reserved, min_unit, max_unit, step_size, allocation_ratio } = row;
    return {
      classId: row.class,
      fields: internedFields(`${total} ${reserved} ${min_unit} ${max_unit} ${step_size} ${allocation_ratio}`, {
        total,
        reserved,
        minUnit: min_unit,
        maxUnit: max_unit,
        stepSize: step_size,
        allocationRatio: usableRatio(Number(allocation_ratio)),
      }),
      used: row.used,
      modifiedAtSeconds: row.modified ?? 0,
    };
  };

  return function* (rows) {
    const inventories = Map.groupBy(rows.inventories, providerOf);
    const traits = Map.groupBy(rows.traits, providerOf);
    const aggregates = Map.groupBy(rows.aggregates, providerOf);
    for (const { id } of rows.providers) {
      const traitIds = (traits.get(id) ?? none).map(({ trait }) => trait).sort((a, b) => a - b);
      const uuids = (aggregates.get(id) ?? none).map(({ aggregate }) => aggregate);
      yield {
        id,
        inventories: (inventories.get(id) ?? none).map(inventoryFrom).sort((a, b) => a.classId - b.classId),
        traitIds: internedTraits(traitIds.join(' '), traitIds),
        aggregates: internedAggregates(JSON.stringify(uuids), uuids),
      };
    }
  };
}

const providerOf = ({ provider }: { readonly provider: number }): number => provider;

const none: readonly never[] = [];
