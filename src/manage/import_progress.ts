import type { ImportReport } from './import/import_report.ts';

/** A stream that shows the progress, such as standard output. */
export type Screen = { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };

/** If the output is not a terminal, a table that takes long gets another line after this many milliseconds. */
const lineEveryMs = 10_000;

/**
 * Shows the progress of an import: on a terminal as a bar, else as lines, at least one for each table that has rows.
 */
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
  // The last column stays free, because some terminals begin a new line after it.
  const room = Math.min(40, width - 1 - label.length - figures.length);
  if (room < 5) return `${table} ${done} of ${total}`.slice(0, Math.max(0, width - 1));
  const filled = Math.floor(part * room);
  return label + '='.repeat(filled) + (filled < room ? '>' : '') + ' '.repeat(Math.max(0, room - filled - 1)) + figures;
}
