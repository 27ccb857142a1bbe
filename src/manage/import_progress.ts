import type { ImportReport } from '../import/import_report.ts';

/** Where the progress is shown: standard output, or something like it. */
export type Screen = { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };

/** On no terminal, a table that takes long is heard of again after so many milliseconds. */
const lineEveryMs = 10_000;

/** Shows how an import goes: as a bar on a terminal, else as lines, at least one for each table that has rows. */
export function showImport(screen: Screen, now: () => number = Date.now): ImportReport {
  let spokenAtMs = now();
  const line = (text: string): void => {
    screen.write(`${screen.isTTY ? eraseLine : ''}${text}\n`);
    spokenAtMs = now();
  };
  return {
    note: line,
    progress: (table, done, total) => {
      if (done === total) {
        if (total > 0) line(`${table}: ${total} ${total === 1 ? 'row' : 'rows'}`);
      } else if (screen.isTTY) {
        screen.write(eraseLine + progressBar(table, done, total, screen.columns || 80));
      } else if (now() - spokenAtMs >= lineEveryMs) {
        line(`${table}: ${done} of ${total} rows`);
      }
    },
  };
}

const eraseLine = '\r\x1b[2K';

/** One line without its end: `allocations [=====>     ]  45% 45000 of 100000`, in `width` characters at most. */
export function progressBar(table: string, done: number, total: number, width: number): string {
  const part = done / total;
  const label = `${table} [`;
  const figures = `] ${`${Math.floor(part * 100)}%`.padStart(4)} ${done} of ${total}`;
  // The last column stays free: some terminals begin a new line behind it.
  const room = Math.min(40, width - 1 - label.length - figures.length);
  if (room < 5) return `${table} ${done} of ${total}`.slice(0, Math.max(0, width - 1));
  const filled = Math.floor(part * room);
  return label + '='.repeat(filled) + (filled < room ? '>' : '') + ' '.repeat(Math.max(0, room - filled - 1)) + figures;
}
