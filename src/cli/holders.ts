import type { Holding, Placement } from '../client/index.ts';
import { withName } from '../placement/uuid.ts';
import { resourcesText } from './amounts.ts';
import type { TextTable } from './table.ts';

/** What consumers hold of a tree. */
export const holdingsIn = ({ holdings }: Placement, in_tree: string): Promise<readonly Holding[]> =>
  Array.fromAsync(holdings.list({ in_tree }));

/** How many consumers hold something. */
export function holderCount(holdings: readonly Holding[]): string {
  const count = new Set(holdings.map(({ consumer }) => consumer)).size;
  if (count === 0) return 'No consumer holds anything';
  return count === 1 ? '1 consumer holds something' : `${count} consumers hold something`;
}

/** The columns of `holdingsTable`. */
export const holdingColumns = ['consumer', 'name', 'project', 'type', 'provider', 'resources'];

/** A line for each holding. */
export const holdingsTable = (holdings: readonly Holding[]): TextTable => ({
  head: holdingColumns,
  rows: holdings.map(({ consumer, name, project_id, consumer_type, resource_provider, resources }) => [
    consumer,
    name ?? undefined,
    project_id,
    consumer_type,
    resource_provider.name,
    resourcesText(resources),
  ]),
  orElse: '',
});

const namedAtMost = 5;

/** The first consumers of a list, with their names. */
export function holdersText(holdings: readonly Holding[]): string {
  const all = new Map(holdings.map(({ consumer, name }) => [consumer, withName(consumer, name)]));
  const more = all.size > namedAtMost ? ` and ${all.size - namedAtMost} more` : '';
  return `${[...all.values()].slice(0, namedAtMost).join(', ')}${more}`;
}
