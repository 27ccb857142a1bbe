/** A head and rows of cells in a box, centred, as Python's prettytable draws them. */
export function centredTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (row: readonly string[]): string =>
    `|${widths.map((width, column) => ` ${centred(row[column] ?? '', width)} `).join('|')}|`;
  return [rule, line(head), rule, ...rows.map(line), rule].join('\n');
}

/** One column of cells, each of several lines, to the left and with a rule around every cell. */
export function cellTable(cells: readonly (readonly string[])[]): string {
  const width = Math.max(...cells.flat().map((text) => text.length));
  const rule = `+${'-'.repeat(width + 2)}+`;
  return [rule, ...cells.flatMap((cell) => [...cell.map((text) => `| ${text.padEnd(width)} |`), rule])].join('\n');
}

/** Of an odd rest the larger half comes before a text of even length, and after one of odd length. */
function centred(text: string, width: number): string {
  const rest = width - text.length;
  const before = text.length % 2 === 0 ? Math.ceil(rest / 2) : Math.floor(rest / 2);
  return `${' '.repeat(before)}${text}${' '.repeat(rest - before)}`;
}

/**
 * Breaks a text at spaces, and behind hyphens within words, into lines of at most `width`; later ones are indented. A piece
 * that fits in no line is cut where the line ends, as by Python's textwrap.
 */
export function wrapped(text: string, width: number, indent: string): readonly string[] {
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
