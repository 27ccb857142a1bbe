import { useMemo } from 'preact/hooks';
import { Amount } from '../amount.tsx';
import { CsvButton } from '../csv_button.tsx';
import { Bar } from '../meter.tsx';
import { Name } from '../name.tsx';
import { Link, navigate, urlOf } from '../route.tsx';
import { sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { numberText, percentText, visible } from '../text.ts';
import type { Group } from './grouping.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

type Row = { readonly tree: Tree; readonly group: Group };
const columns = ['name', 'group', 'part', 'used', 'capacity', 'free', 'reserved'] as const;
type Column = (typeof columns)[number];
/** The fullest first. */
const usualSort = '-part';

const pageSize = 100;
const byText = new Intl.Collator('en', { numeric: true });

/** The same as the grid, in text: one row for each cell. */
export function FleetTable({
  groups,
  resourceClass,
  measure,
  search,
  sort: sortText,
  page,
  urlWith,
}: {
  readonly groups: readonly Group[];
  readonly resourceClass: string;
  readonly measure: Measure;
  readonly search: string;
  /** A column, with `-` before it where the largest comes first. */
  readonly sort: string;
  /** From 1. */
  readonly page: number;
  /** The URL of this table with other values. */
  readonly urlWith: (values: { readonly sort?: string; readonly page?: string }) => string;
}) {
  const sort = useMemo(() => sortOf(sortText || usualSort), [sortText]);
  const choose = (next: string) => navigate(urlWith({ sort: next === usualSort ? '' : next, page: '' }), 'replace');
  const setPage = (place: number) => navigate(urlWith({ page: place === 0 ? '' : String(place + 1) }));
  const rows = useMemo(() => {
    const all = groups.flatMap((group) => group.trees.map((tree): Row => ({ tree, group })));
    const found = search === '' ? all : all.filter(({ tree }) => tree.searched.includes(search));
    const sign = sort.isDown ? -1 : 1;
    const column = columns.find((name) => name === sort.by) ?? 'part';
    return found.sort(
      (a, b) => sign * compare(a, b, column, resourceClass, measure) || byText.compare(a.tree.name, b.tree.name),
    );
  }, [groups, resourceClass, measure, search, sort]);
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
          heading('part', 'full'),
          heading('used'),
          heading('free'),
          heading('capacity'),
          heading('reserved'),
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
                </Link>
              </th>
              {isGrouped ? <td title={group.key}>{group.label}</td> : null}
              <td class="number with-bar">
                {percentText(part)} <Bar part={part} />
              </td>
              {amounts === undefined ? (
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
          name={resourceClass}
          table={() => ({
            head: ['provider', 'uuid', 'group', 'used', 'capacity', 'total', 'reserved'],
            rows: rows.map(({ tree: { name, uuid, amounts }, group }) => {
              const each = amounts.get(resourceClass);
              return [name, uuid, group.label, each?.used, each?.capacity, each?.total, each?.reserved];
            }),
          })}
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

function compare(a: Row, b: Row, by: Column, resourceClass: string, measure: Measure): number {
  if (by === 'name') return byText.compare(a.tree.name, b.tree.name);
  if (by === 'group') return byText.compare(a.group.label, b.group.label);
  const value = ({ tree }: Row): number => {
    const amounts = tree.amounts.get(resourceClass);
    if (amounts === undefined) return -1;
    if (by === 'part') return fullness(amounts, measure);
    return by === 'free' ? Math.max(0, amounts.capacity - amounts.used) : amounts[by];
  };
  const [left, right] = [value(a), value(b)].map((each) => (Number.isNaN(each) ? -1 : each));
  return left === right ? 0 : (left ?? 0) < (right ?? 0) ? -1 : 1;
}
