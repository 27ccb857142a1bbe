import { compareNames } from '../src/text/strings.ts';
import type { Heading } from './table.tsx';

/** An order: a column, and whether the largest comes first. */
export type Sort = { readonly by: string; readonly isDown: boolean };

/** Reads an order from the URL: a column, with `-` before it where the largest comes first. */
export const sortOf = (text: string): Sort =>
  text.startsWith('-') ? { by: text.slice(1), isDown: true } : { by: text, isDown: false };

/** What a row has in a column; undefined for nothing. */
export type Sortable = string | number | undefined;

/** Sorts rows; without an order they stay as they are. Rows without a value in the column come last. The sort is stable. */
export function sortedBy<Row>(
  rows: readonly Row[],
  { by, isDown }: Sort,
  valueIn: (row: Row, by: string) => Sortable,
): readonly Row[] {
  if (by === '') return rows;
  const sign = isDown ? -1 : 1;
  return rows
    .map((row) => ({ row, value: valueIn(row, by) }))
    .sort(({ value: a }, { value: b }) => {
      if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
      if (typeof a === 'string' || typeof b === 'string') return sign * compareNames(String(a), String(b));
      return a === b ? 0 : sign * (a < b ? -1 : 1);
    })
    .map(({ row }) => row);
}

/** A time as a value to sort by, in milliseconds. */
const sortableTime = (time: string | null | undefined): number | undefined =>
  time === null || time === undefined ? undefined : Date.parse(time);

/** The age for a time: the older, the larger. */
export const sortableAge = (since: string | null | undefined): number | undefined => {
  const ms = sortableTime(since);
  return ms === undefined ? undefined : -ms;
};

/** Sorts by the end of a term: consumers without a term come last. */
export const sortableEnd = (end: string | null | undefined): number => sortableTime(end) ?? Number.POSITIVE_INFINITY;

/** The heading of a column by which rows are sorted: a button that sorts by it, or turns the order round. */
export function sortHeading(
  by: string,
  text: string,
  {
    sort,
    isNumber,
    choose,
  }: { readonly sort: Sort; readonly isNumber: boolean; readonly choose: (sort: string) => void },
): Heading {
  const isChosen = sort.by === by;
  const isNextDown = isChosen ? !sort.isDown : isNumber;
  return {
    text: (
      <button type="button" class="plain" onClick={() => choose(`${isNextDown ? '-' : ''}${by}`)}>
        {text}
        <span aria-hidden="true">{isChosen ? (sort.isDown ? ' ▾' : ' ▴') : ''}</span>
      </button>
    ),
    kind: isNumber ? 'number' : undefined,
    sort: isChosen ? (sort.isDown ? 'descending' : 'ascending') : undefined,
  };
}
