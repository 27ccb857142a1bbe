import { drainOf } from '../../src/cli/drain_marks.ts';
import { capacityOf } from '../../src/client/inventories.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { Amount } from '../amount.tsx';
import { fullness } from '../fleet/trees.ts';
import { Table } from '../table.tsx';
import { numberText, percentText, visible } from '../text.ts';

type Inventory = WholeProvider['inventories'][string];

/** What a provider has, one class a row, as bars and as numbers. */
export function InventoryTable({ provider }: { readonly provider: WholeProvider }) {
  const { inventories, usages } = provider;
  const isDrained = drainOf(provider) === 'drained';
  const rows = Object.entries(inventories).sort(([a], [b]) => (a < b ? -1 : 1));
  if (rows.length === 0) return <p class="faint">It has no inventory of its own.</p>;
  return (
    <>
      <Table
        name="Table of inventories"
        kind="inventories"
        headings={[
          'class',
          { text: 'used, free, reserved', kind: 'bar-column' },
          ...['used', 'capacity', 'total', 'reserved', 'ratio'].map((text) => ({ text, kind: 'number' }) as const),
          'units',
        ]}
      >
        {rows.map(([name, inventory]) => {
          const used = usages[name] ?? 0;
          const { total, reserved } = inventory;
          const capacity = capacityOf(inventory);
          return (
            <tr key={name}>
              <th scope="row">{visible(name)}</th>
              <td class="bar-column">
                <InventoryBar used={used} inventory={inventory} isDrained={isDrained} />
              </td>
              <td class="number">
                <Amount of={name} is={used} />{' '}
                {isDrained ? null : (
                  <span class="faint">({percentText(fullness({ used, capacity, total, reserved }, 'capacity'))})</span>
                )}
              </td>
              <td class="number">
                <Amount of={name} is={capacity} />
              </td>
              <td class="number">
                <Amount of={name} is={total} />
              </td>
              <td class="number">
                <Amount of={name} is={reserved} />
              </td>
              <td class="number">{inventory.allocation_ratio}</td>
              <td class="faint">{unitsText(inventory)}</td>
            </tr>
          );
        })}
      </Table>
      <ul class="key" aria-label="What the bars show">
        <li class="used">used</li>
        <li class="free">free</li>
        <li class="reserved">reserved</li>
        <li class="over">more than the capacity</li>
        <li class="physical">what there is; beyond the mark it is overcommitted</li>
      </ul>
    </>
  );
}

const maxInteger = 2_147_483_647;

/** The limits of one allocation, where there are any. */
function unitsText({ min_unit, max_unit, step_size, total }: Inventory): string {
  const limits = [
    ...(min_unit > 1 ? [`from ${numberText(min_unit)}`] : []),
    ...(max_unit < maxInteger && max_unit !== total ? [`to ${numberText(max_unit)}`] : []),
    ...(step_size > 1 ? [`by ${numberText(step_size)}`] : []),
  ];
  return limits.join(' ');
}

/**
 * A bar for the amount that could be allocated without a reserved part. It shows what is used, free and reserved, and
 * what is used beyond the capacity. A mark is at the total, so the part to its right is overcommitted.
 */
function InventoryBar({
  used,
  inventory,
  isDrained,
}: {
  readonly used: number;
  readonly inventory: Inventory;
  /** All of it is reserved, so that what is used is no mistake. */
  readonly isDrained: boolean;
}) {
  const { total, reserved, allocation_ratio: ratio } = inventory;
  const capacity = Math.max(0, (total - reserved) * ratio);
  const whole = Math.max(total * ratio, total, used, 1);
  const at = (amount: number) => (amount / whole) * 100;
  const within = Math.min(used, capacity);
  return (
    <svg class="inventory-bar" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
      <rect class="free" y="2" width={at(capacity)} height="10" />
      <rect
        class="reserved"
        x={at(capacity)}
        y="2"
        width={at(Math.min(reserved * ratio, whole - capacity))}
        height="10"
      />
      <rect class="used" y="2" width={at(within)} height="10" />
      {used > capacity ? (
        <rect class={isDrained ? 'used' : 'over'} x={at(capacity)} y="2" width={at(used - capacity)} height="10" />
      ) : null}
      {ratio === 1 ? null : <rect class="physical" x={Math.min(99.4, at(total))} width="0.6" height="14" />}
    </svg>
  );
}
