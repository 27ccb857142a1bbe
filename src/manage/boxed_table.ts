/** Lines in a box with a rule between head and body, centred, as Python's prettytable draws them. */
export function centredTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? title).length)));
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (row: readonly string[]): string =>
    `|${widths.map((width, column) => ` ${centred(row[column] ?? '', width)} `).join('|')}|`;
  return [rule, line(head), rule, ...rows.map(line), ...(rows.length > 0 ? [rule] : [])].join('\n');
}

/** One column of cells with several lines each, to the left, and a rule around every cell. */
export function cellTable(cells: readonly (readonly string[])[]): string {
  const width = Math.max(...cells.flat().map((text) => text.length));
  const rule = `+${'-'.repeat(width + 2)}+`;
  return [rule, ...cells.flatMap((cell) => [...cell.map((text) => `| ${text.padEnd(width)} |`), rule])].join('\n');
}

/** Of an odd rest prettytable puts the larger half before a text of even length, and after one of odd length. */
function centred(text: string, width: number): string {
  const rest = width - text.length;
  const before = text.length % 2 === 0 ? Math.ceil(rest / 2) : Math.floor(rest / 2);
  return `${' '.repeat(before)}${text}${' '.repeat(rest - before)}`;
}

/** Breaks a text at spaces and after hyphens into lines of at most `width`; all but the first are indented. */
export function wrapped(text: string, width: number, indent: string): readonly string[] {
  const pieces = text.split(/\s+/).flatMap((word) => word.split(/(?<=[\p{L}\d]-)(?=\p{L})/u).map((piece, place, all) => ({ piece, ends: place === all.length - 1 })));
  const lines: string[] = [];
  let line = '';
  for (const { piece, ends } of pieces) {
    const start = lines.length === 0 ? '' : indent;
    if (line !== '' && line.trimEnd().length + 0 >= 0 && (line + piece).length > width) {
      lines.push(line.trimEnd());
      line = indent;
    } else if (line === '') line = start;
    line += ends ? `${piece} ` : piece;
  }
  return [...lines, line.trimEnd()];
}
