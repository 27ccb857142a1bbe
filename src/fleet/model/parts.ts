import type { FleetPage } from '../../../db/fleet/rows.ts';
import { usableRatio } from '../../placement/inventory.ts';
import { interning } from '../../text/cache.ts';
import { byClass, type FieldsOfClass, type Inventory, type Provider } from './provider.ts';

/** The parts of a provider: its inventories, traits and aggregates. */
export type ProviderParts = Pick<Provider, 'id' | 'inventories' | 'traitIds' | 'aggregates'>;

/** @returns a function that collects the parts of providers from a page; equal parts share one object */
export function partsReader(): (page: FleetPage) => Generator<ProviderParts> {
  const internedFields = interning<FieldsOfClass>();
  const internedTraits = interning<readonly number[]>();
  const internedAggregates = interning<readonly string[]>();

  return function* ({ providers, inventories, traits, aggregates }) {
    const collected = new Map(providers.map(({ id }) => [id, emptyParts()]));
    for (const { providers: holders, modified, used, ...row } of inventories) {
      const { class: classId, total, reserved, min_unit, max_unit, step_size, allocation_ratio } = row;
      const fields = internedFields(
        `${classId} ${total} ${reserved} ${min_unit} ${max_unit} ${step_size} ${allocation_ratio}`,
        {
          classId,
          total,
          reserved,
          minUnit: min_unit,
          maxUnit: max_unit,
          stepSize: step_size,
          allocationRatio: usableRatio(Number(allocation_ratio)),
        },
      );
      for (const [index, id] of holders.entries()) {
        const modifiedAtSeconds = modified[index] ?? 0;
        collected.get(id)?.inventories.push({ fields, used: used[index] ?? 0, modifiedAtSeconds });
      }
    }
    for (const { trait, providers: holders } of traits)
      for (const id of holders) collected.get(id)?.traitIds.push(trait);
    for (const { aggregate, providers: members } of aggregates) {
      for (const id of members) collected.get(id)?.aggregates.push(aggregate);
    }
    for (const [id, parts] of collected) {
      const traitIds = parts.traitIds.sort((a, b) => a - b);
      yield {
        id,
        // A list that grew has unused capacity; a copy has none.
        inventories: parts.inventories.sort(byClass).slice(),
        traitIds: internedTraits(traitIds.join(' '), traitIds),
        aggregates: internedAggregates(JSON.stringify(parts.aggregates), parts.aggregates),
      };
    }
  };
}

const emptyParts = (): { inventories: Inventory[]; traitIds: number[]; aggregates: string[] } => ({
  inventories: [],
  traitIds: [],
  aggregates: [],
});
