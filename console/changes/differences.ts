import { listDifference } from '../../src/cli/differences.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { amountText, visible } from '../text.ts';

type Inventory = WholeProvider['inventories'][string];

/** The values of an inventory, in the order in which they are told. */
const inventoryFields = ['total', 'reserved', 'allocation_ratio', 'min_unit', 'max_unit', 'step_size'] as const;
/** These are amounts of the class; the ratio is a number. */
const amountFields: readonly string[] = ['total', 'reserved', 'min_unit', 'max_unit', 'step_size'];

/** What of a provider has changed, each with what it was and is: `VCPU used 8 → 12`. */
export function differencesOf(before: WholeProvider, after: WholeProvider): readonly string[] {
  return [
    ...change('name', visible(before.name), visible(after.name)),
    ...change('parent', before.parent_provider_uuid ?? 'none', after.parent_provider_uuid ?? 'none'),
    ...keysOf(before.inventories, after.inventories).flatMap((name) =>
      inventoryChanges(name, before.inventories[name], after.inventories[name]),
    ),
    ...keysOf(before.usages, after.usages).flatMap((name) => {
      const [was, is] = [before.usages[name] ?? 0, after.usages[name] ?? 0];
      return change(`${visible(name)} used`, amountText(name, was), amountText(name, is), was !== is);
    }),
    ...setChanges('trait', before.traits, after.traits),
    ...setChanges('aggregate', before.aggregates, after.aggregates),
  ];
}

const keysOf = (...objects: readonly object[]): readonly string[] =>
  [...new Set(objects.flatMap((each) => Object.keys(each)))].sort();

const change = (what: string, was: string, is: string, isOther = was !== is): readonly string[] =>
  isOther ? [`${what} ${was} → ${is}`] : [];

function inventoryChanges(
  name: string,
  before: Inventory | undefined,
  after: Inventory | undefined,
): readonly string[] {
  const shown = visible(name);
  if (before === undefined && after !== undefined) return [`${shown} new, total ${amountText(name, after.total)}`];
  if (before === undefined || after === undefined) return [`${shown} gone`];
  return inventoryFields.flatMap((field) => {
    const text = (value: number) => (amountFields.includes(field) ? amountText(name, value) : String(value));
    const [was, is] = [before[field], after[field]];
    return change(`${shown} ${field.replace('allocation_', '').replace('_', ' ')}`, text(was), text(is), was !== is);
  });
}

/** `+` what came, `−` what went. */
function setChanges(what: string, before: readonly string[], after: readonly string[]): readonly string[] {
  const { added, removed } = listDifference(before, after);
  return [...added.map((each) => `+ ${what} ${visible(each)}`), ...removed.map((each) => `− ${what} ${visible(each)}`)];
}
