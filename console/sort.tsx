import type { Heading } from './table.tsx';

/** An order: a column, and whether the largest comes first. */
export type Sort = { readonly by: string; readonly isDown: boolean };

/** Reads an order from the URL: a column, with `-` before it where the largest comes first. */
export const sortOf = (text: string): Sort =>
  text.startsWith('-') ? { by: text.slice(1), isDown: true } : { by: text, isDown: false };

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
