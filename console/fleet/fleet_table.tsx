import { useMemo } from 'preact/hooks';
import { Amount } from '../amount.tsx';
import { CsvButton } from '../csv_button.tsx';
import type { LoadedFits } from '../fit/use_fits.ts';
import { Bar } from '../meter.tsx';
import { Name } from '../name.tsx';
import { Link, navigate, urlOf } from '../route.tsx';
import { type Sortable, sortedBy, sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { numberText, percentText, visible } from '../text.ts';
import { DrainTag } from './drain.tsx';
import { unmetTexts } from './fit_shown.tsx';
import type { Group } from './grouping.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

type Row = { readonly tree: Tree; readonly group: Group };
const columns = ['name', 'group', 'fits', 'part', 'used', 'capacity', 'free', 'reserved'] as const;
type Column = (typeof columns)[number];
/** The fullest trees first; for a query, the trees where it fits most often, and then the trees where it nearly fits. */
const usualSorts = { full: '-part', fit: '-fits' };

const pageSize = 100;

/** The same as the grid, in text: one row for each cell. */
export function FleetTable({
  groups,
  resourceClass,
  measure,
  fits,
  search,
  sort: sortText,
  page,
  urlWith,
}: {
  readonly groups: readonly Group[];
  readonly resourceClass: string;
  readonly measure: Measure;
  /** Where a query fits: shown instead of the amounts. */
  readonly fits?: LoadedFits | undefined;
  readonly search: string;
  /** A column, with `-` before it where the largest comes first. */
  readonly sort: string;
  /** From 1. */
  readonly page: number;
  /** The URL of this table with other values. */
  readonly urlWith: (values: { readonly sort?: string; readonly page?: string }) => string;
}) {
  const found = fits?.fits;
  const usualSort = fits === undefined ? usualSorts.full : usualSorts.fit;
  const sort = useMemo(() => sortOf(sortText || usualSort), [sortText, usualSort]);
  const choose = (next: string) => navigate(urlWith({ sort: next === usualSort ? '' : next, page: '' }), 'replace');
  const setPage = (index: number) => navigate(urlWith({ page: index === 0 ? '' : String(index + 1) }));
  const rows = useMemo(() => {
    const all = groups.flatMap((group) => group.trees.map((tree): Row => ({ tree, group })));
    const searched = search === '' ? all : all.filter(({ tree }) => tree.searched.includes(search));
    const column = columns.find((name) => name === sort.by) ?? 'part';
    const valueIn = ({ tree, group }: Row): Sortable => {
      if (column === 'name') return tree.name;
      if (column === 'group') return group.label;
      if (column === 'fits') return found?.times.get(tree.uuid) ?? (found?.near.has(tree.uuid) ? 0 : undefined);
      return amountIn(tree, column, resourceClass, measure);
    };
    return sortedBy(
      sortedBy(searched, sortOf('name'), ({ tree }) => tree.name),
      { ...sort, by: column },
      valueIn,
    );
  }, [groups, resourceClass, measure, search, sort, found]);
  const pages = Math.max(1, Math.ceil(rows.length / pageSize));
  const shown = Math.min(Number.isInteger(page) && page > 0 ? page - 1 : 0, pages - 1);
  const isGrouped = groups.length > 1;
  const heading = (by: Column, text: string = by) =>
    sortHeading(by, text, { sort, isNumber: by !== 'name' && by !== 'group', choose });
  return (
    <div class="table-part">
      <Table
        name="Table of providers"
        caption={`Root providers by ${visible(resourceClass)}`}
        headings={[
          heading('name', 'provider'),
          isGrouped ? heading('group') : undefined,
          ...(fits === undefined
            ? [heading('part', 'full'), heading('used'), heading('free'), heading('capacity'), heading('reserved')]
            : [heading('fits'), 'what keeps it from fitting']),
        ]}
      >
        {rows.slice(shown * pageSize, (shown + 1) * pageSize).map(({ tree, group }) => {
          const amounts = tree.amounts.get(resourceClass);
          const part = fullness(amounts, measure);
          return (
            <tr key={`${group.key} ${tree.uuid}`}>
              <th scope="row">
                <Link to={urlOf('providers', tree.uuid)}>
                  <Name text={tree.name} />
                </Link>{' '}
                <DrainTag drain={tree.drain} />
              </th>
              {isGrouped ? <td title={group.key}>{group.label}</td> : null}
              {fits === undefined ? (
                <td class="number with-bar">
                  {percentText(part)} <Bar part={part} />
                </td>
              ) : (
                <td class="number">
                  {found === undefined ? '' : numberText(found.times.get(tree.uuid) ?? 0)}
                  {found?.near.has(tree.uuid) ? ', nearly' : ''}
                </td>
              )}
              {fits !== undefined ? (
                <td>{found?.times.has(tree.uuid) ? '' : unmetTexts(found, tree).join('; ')}</td>
              ) : amounts === undefined ? (
                <td colSpan={4} class="faint">
                  has none
                </td>
              ) : (
                <>
                  <td class="number">
                    <Amount of={resourceClass} is={amounts.used} />
                  </td>
                  <td class="number">
                    <Amount of={resourceClass} is={Math.max(0, amounts.capacity - amounts.used)} />
                  </td>
                  <td class="number">
                    <Amount of={resourceClass} is={amounts.capacity} />
                  </td>
                  <td class="number">
                    <Amount of={resourceClass} is={amounts.reserved} />
                  </td>
                </>
              )}
            </tr>
          );
        })}
      </Table>
      <nav class="pages" aria-label="Pages of the table">
        <CsvButton
          name={fits === undefined ? resourceClass : 'fit'}
          table={() =>
            fits === undefined
              ? {
                  head: ['provider', 'uuid', 'group', 'used', 'capacity', 'total', 'reserved'],
                  rows: rows.map(({ tree: { name, uuid, amounts }, group }) => {
                    const each = amounts.get(resourceClass);
                    return [name, uuid, group.label, each?.used, each?.capacity, each?.total, each?.reserved];
                  }),
                }
              : {
                  head: ['provider', 'uuid', 'group', 'fits', 'what keeps it from fitting'],
                  rows: rows.map(({ tree, group }) => {
                    const { name, uuid } = tree;
                    return [name, uuid, group.label, found?.times.get(uuid) ?? 0, unmetTexts(found, tree).join('; ')];
                  }),
                }
          }
        />
        <button type="button" disabled={shown === 0} onClick={() => setPage(shown - 1)}>
          Previous
        </button>
        <span>
          {rows.length === 0
            ? 'No provider'
            : `${numberText(shown * pageSize + 1)}–${numberText(Math.min(rows.length, (shown + 1) * pageSize))} of ${numberText(rows.length)}`}
        </span>
        <button type="button" disabled={shown >= pages - 1} onClick={() => setPage(shown + 1)}>
          Next
        </button>
      </nav>
    </div>
  );
}

/** The value of a tree in a column of amounts; trees without the class come before empty ones. */
function amountIn(tree: Tree, by: Exclude<Column, 'name' | 'group' | 'fits'>, resourceClass: string, measure: Measure) {
  const amounts = tree.amounts.get(resourceClass);
  if (amounts === undefined) return -1;
  const value =
    by === 'part'
      ? fullness(amounts, measure)
      : by === 'free'
        ? Math.max(0, amounts.capacity - amounts.used)
        : amounts[by];
  return Number.isNaN(value) ? -1 : value;
}
