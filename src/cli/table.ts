import { escapeControls } from '../text/print.ts';

/** The forms in which a command prints its result. */
export const outputFormats = ['table', 'json', 'csv', 'value'] as const;

/** One of these forms. */
export type OutputFormat = (typeof outputFormats)[number];

/** One cell. Numbers are aligned to the right. */
export type Cell = string | number | undefined;

/** A table that a command prints. */
export type TextTable = {
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** The names and values of one thing. A row without a name continues the row above. */
  readonly isFields?: boolean;
  /** Columns that are not drawn, unless they are requested. */
  readonly undrawn?: readonly string[];
  /** What people see instead of a table without rows. */
  readonly orElse?: string;
};

/** What a command prints: sentences and tables. */
export type Printed = string | TextTable | readonly (string | TextTable)[];

/** Names and their values, one below the other. */
export const fields = (values: readonly (readonly [name: string, value: Cell])[]): TextTable => ({
  head: ['field', 'value'],
  rows: values.map(([name, value]) => [name, value === undefined ? '' : String(value)]),
  isFields: true,
});

/** A table of one column. */
export const column = (head: string, values: readonly string[]): TextTable => ({
  head: [head],
  rows: values.map((value) => [value]),
});

/** Draws a table in a box, as the OpenStack client does. */
export function drawn({ undrawn = [], ...whole }: TextTable): string {
  if (whole.rows.length === 0 && whole.orElse !== undefined) return whole.orElse;
  const { head, rows } = withColumns(whole, (name) => !undrawn.includes(name));
  const texts = rows.map((row) => head.map((_, index) => cellText(row[index])));
  const widths = head.map((title, index) =>
    texts.reduce((widest, row) => Math.max(widest, widthOf(row[index] ?? '')), widthOf(title)),
  );
  const isNumeric = head.map((_, index) => {
    const cells = rows.map((row) => row[index]).filter((cell) => cell !== undefined);
    return cells.length > 0 && cells.every((cell) => typeof cell === 'number');
  });
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (cells: readonly string[]): string =>
    `|${widths.map((width, index) => ` ${padded(cells[index] ?? '', width, isNumeric[index] ?? false)} `).join('|')}|`;
  return [rule, line(head), rule, ...texts.map(line), ...(rows.length === 0 ? [] : [rule])].join('\n');
}

/** Sentences and tables, for people. */
export const drawnAll = (parts: readonly (string | TextTable)[]): string =>
  parts
    .map((part) => (typeof part === 'string' ? part : drawn(part)))
    .filter((text) => text !== '')
    .join('\n');

/** A head and rows as comma-separated values, as in RFC 4180, but with line feeds only. */
export const csv = ({ head, rows }: TextTable): string =>
  [head, ...rows].map((row) => row.map((cell) => quoted(String(cell ?? ''))).join(',')).join('\n');

const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The values alone: a line for each row with spaces between, or of fields a line for each value. */
export const values = ({ rows, isFields }: TextTable): string =>
  rows.map((row) => (isFields ? row.slice(1) : row).map(cellText).join(' ')).join('\n');

/** The rows as objects by the names of the columns, or the fields as one object. */
export function objects({ head, rows, isFields }: TextTable): object {
  if (!isFields) return rows.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index] ?? null])));
  const byName = Map.groupBy(rows, ([name]) => String(name));
  return Object.fromEntries(
    Array.from(byName, ([name, [first, ...more]]) => [
      name,
      more.length === 0 ? (first?.[1] ?? null) : [first, ...more].map((row) => row?.[1] ?? null),
    ]),
  );
}

/** A table with some of its columns or fields only; undefined if the table does not have all of them. */
export function narrowed(table: TextTable, names: readonly string[]): TextTable | undefined {
  if (!names.every((name) => namesOf(table).includes(name))) return undefined;
  if (table.isFields) return { ...table, rows: table.rows.filter(([name]) => names.includes(String(name))) };
  const { orElse: _, undrawn: _undrawn, ...whole } = table;
  return withColumns(whole, (name) => names.includes(name));
}

const withColumns = (table: TextTable, isKept: (name: string) => boolean): TextTable => ({
  ...table,
  head: table.head.filter(isKept),
  rows: table.rows.map((row) => row.filter((_, index) => isKept(table.head[index] ?? ''))),
});

/** What can be chosen of a table: its columns, or its fields. */
export const namesOf = ({ head, rows, isFields }: TextTable): readonly string[] =>
  isFields ? [...new Set(rows.map(([name]) => String(name)))] : head;

/** Sets the name of each row of fields, also of rows that continue the row above. */
export function withNames(table: TextTable): TextTable {
  if (!table.isFields) return table;
  let above: Cell;
  const rows = table.rows.map(([name, value]) => {
    above = name === '' ? above : name;
    return [above, value];
  });
  return { ...table, rows };
}

/** Names come from other users and could send commands to the terminal. */
const cellText = (cell: Cell): string => escapeControls(String(cell ?? ''));

const padded = (text: string, width: number, toTheRight: boolean): string => {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)));
  return toTheRight ? space + text : text + space;
};

/** How many columns a text takes in a terminal. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e│├└─]*$/.test(text)) return text.length;
  measure ??= newMeasure();
  return measure(text);
}

let measure: ((text: string) => number) | undefined;

/** Created when first needed: that takes 50 ms, and most commands print only plain text. */
function newMeasure(): (text: string) => number {
  const segments = new Intl.Segmenter();
  const wide =
    /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Emoji_Presentation}|[\uFF01-\uFF60\u3000-\u303F]/u;
  // Half-width forms: each takes a column, also marks that belong to the letter before.
  const half = /[\uFF61-\uFFDC]/g;
  return (text) => {
    let width = 0;
    for (const { segment } of segments.segment(text.replaceAll(half, 'x'))) width += wide.test(segment) ? 2 : 1;
    return width;
  };
}
