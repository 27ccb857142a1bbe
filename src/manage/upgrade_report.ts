import { escapeControlsInJson } from '../text/print.ts';
import { type CheckResult, failure, success, warning } from './upgrade_checks.ts';

const title = 'Upgrade Check Results';
const words = { [success]: 'Success', [warning]: 'Warning', [failure]: 'Failure' } as const;

/** The results as a table, as `placement-status upgrade check` prints them. */
export function reportTable(results: readonly CheckResult[]): string {
  const cells = results.map(({ check, result, details }) => [
    `Check: ${check}`,
    `Result: ${words[result]}`,
    // Upstream breaks only the details into lines, at 60 columns, and puts "Details:" before the first line.
    ...wrapped(details ?? 'None', 60, '  ').map((line, index) => (index === 0 ? `Details: ${line}` : line)),
  ]);
  return cellTable([[title], ...cells]);
}

/** The results as `--json` prints them. */
export const reportJson = (results: readonly CheckResult[]): string =>
  escapeControlsInJson(JSON.stringify({ name: title, checks: results }));

/** Draws a head and rows of cells in a box, with centred texts, as Python's prettytable does. */
export function centredTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (row: readonly string[]): string =>
    `|${widths.map((width, column) => ` ${centred(row[column] ?? '', width)} `).join('|')}|`;
  return [rule, line(head), rule, ...rows.map(line), rule].join('\n');
}

/** Draws one column of cells with several lines each. Texts are on the left, and a rule is around every cell. */
function cellTable(cells: readonly (readonly string[])[]): string {
  const width = Math.max(...cells.flat().map((text) => text.length));
  const rule = `+${'-'.repeat(width + 2)}+`;
  return [rule, ...cells.flatMap((cell) => [...cell.map((text) => `| ${text.padEnd(width)} |`), rule])].join('\n');
}

/** If the free space is odd, the extra space is before a text of even length and after a text of odd length. */
function centred(text: string, width: number): string {
  const rest = width - text.length;
  const before = text.length % 2 === 0 ? Math.ceil(rest / 2) : Math.floor(rest / 2);
  return `${' '.repeat(before)}${text}${' '.repeat(rest - before)}`;
}

/**
 * Breaks a text into lines of at most `width`, at spaces and after hyphens within words. Lines after the first are
 * indented. A piece that is longer than a line is cut at the end of the line, as Python's textwrap does.
 */
function wrapped(text: string, width: number, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  const endLine = (): void => {
    lines.push(line.trimEnd());
    line = indent;
  };
  for (let piece of text.split(/(?<=\s)|(?<=\p{L}-)(?=\p{L})/u)) {
    while ((line + piece).trimEnd().length > width) {
      if (piece.trimEnd().length > width - indent.length) {
        const room = width - line.length;
        line += piece.slice(0, room);
        piece = piece.slice(room);
      }
      endLine();
    }
    line += piece;
  }
  return [...lines, line.trimEnd()];
}
