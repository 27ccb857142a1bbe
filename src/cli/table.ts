import { escapeControls } from '../text/print.ts';

/** One cell. Numbers are aligned to the right. */
export type Cell = string | number | undefined;

/** Draws a head and rows in a box, as the OpenStack client does. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => head.map((_, column) => cellText(row[column])));
  const widths = head.map((title, column) =>
    texts.reduce((widest, row) => Math.max(widest, widthOf(row[column] ?? '')), widthOf(title)),
  );
  const isNumeric = head.map((_, column) => {
    const cells = rows.map((row) => row[column]).filter((cell) => cell !== undefined);
    return cells.length > 0 && cells.every((cell) => typeof cell === 'number');
  });
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (cells: readonly string[]): string =>
    `|${widths.map((width, column) => ` ${padded(cells[column] ?? '', width, isNumeric[column] ?? false)} `).join('|')}|`;
  return [rule, line(head), rule, ...texts.map(line), ...(rows.length === 0 ? [] : [rule])].join('\n');
}

/** Names and their values, one below the other. */
export const fields = (values: readonly (readonly [name: string, value: Cell])[]): string =>
  table(
    ['field', 'value'],
    values.map(([name, value]) => [name, value === undefined ? '' : String(value)]),
  );

/** A head and rows as comma-separated values, as in RFC 4180, but with line feeds only. */
export const csv = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [head, ...rows].map((row) => row.map((cell) => quoted(String(cell ?? ''))).join(',')).join('\n');

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A table of one column. */
export const column = (head: string, values: readonly string[]): string =>
  table(
    [head],
    values.map((value) => [value]),
  );

/** Names come from other users and could send commands to the terminal. */
const cellText = (cell: Cell): string => escapeControls(String(cell ?? ''));

const padded = (text: string, width: number, toTheRight: boolean): string => {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)));
  return toTheRight ? space + text : text + space;
};

const segments = new Intl.Segmenter();
const wide =
  /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Emoji_Presentation}|[\uFF01-\uFF60\u3000-\u303F]/u;

/** How many columns a text takes in a terminal. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e│├└─]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
}
