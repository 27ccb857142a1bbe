import { listDifference } from '../../src/cli/differences.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { amountText, exactText, visible } from '../text.ts';

type Inventory = WholeProvider['inventories'][string];

/** The values of an inventory, in the order in which they are shown. */
const inventoryFields = ['total', 'reserved', 'allocation_ratio', 'min_unit', 'max_unit', 'step_size'] as const;

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
      return amountChange('used', name, was, is);
    }),
    ...setChanges('trait', before.traits, after.traits),
    ...setChanges('aggregate', before.aggregates, after.aggregates),
  ];
}

const keysOf = (...objects: readonly object[]): readonly string[] =>
  [...new Set(objects.flatMap((each) => Object.keys(each)))].sort();

const change = (what: string, was: string, is: string): readonly string[] =>
  was === is ? [] : [`${what} ${was} → ${is}`];

/** Where the numbers differ by less than their texts in a unit show, the exact ones. */
function amountChange(field: string, name: string, was: number, is: number): readonly string[] {
  const [from, to] = [amountText(name, was), amountText(name, is)];
  const isSeen = from !== to;
  return change(`${visible(name)} ${field}`, isSeen ? from : exactText(name, was), isSeen ? to : exactText(name, is));
}

function inventoryChanges(
  name: string,
  before: Inventory | undefined,
  after: Inventory | undefined,
): readonly string[] {
  const shown = visible(name);
  if (before === undefined && after !== undefined) return [`${shown} new, total ${amountText(name, after.total)}`];
  if (before === undefined || after === undefined) return [`${shown} gone`];
  return inventoryFields.flatMap((field) => {
    const [was, is] = [before[field], after[field]];
    if (field === 'allocation_ratio') return change(`${shown} ratio`, String(was), String(is));
    return amountChange(field.replace('_', ' '), name, was, is);
  });
}

/** `+` for added values, `−` for removed ones. */
function setChanges(what: string, before: readonly string[], after: readonly string[]): readonly string[] {
  const { added, removed } = listDifference(before, after);
  return [...added.map((each) => `+ ${what} ${visible(each)}`), ...removed.map((each) => `− ${what} ${visible(each)}`)];
}
