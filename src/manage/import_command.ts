import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { failureOf, isReadOnly, isUnavailable } from '../../db/engine/failures.ts';
import { withPrivilegeRemedy } from '../../db/schema/privileges.ts';
import { howToContinue } from '../../db/schema/unfinished_import.ts';
import { withParameters } from '../config/database_url.ts';
import { parseOsloIni, substitute } from '../config/oslo_ini.ts';
import { messageOf, print } from '../text/print.ts';
import { type Imported, importDeployment } from './import/import_deployment.ts';
import { openSource, readSourceUrl, type SourceDatabase, type SourceSettings } from './import/source.ts';
import type { ImportReport } from './import/target.ts';

/** Adds `import` to a program. */
export function addImportCommand(program: Command, withDatabase: WithDatabase): void {
  const command = program.command('import');
  command
    .description(
      'copy all data of an OpenStack Placement on MySQL or MariaDB into the configured database, which must be empty',
    )
    .option('--from <url>', 'mysql://user:password@host:port/database; without a password, that of MYSQL_PWD')
    .option('--from-config <file>', 'the placement.conf with this URL, instead of --from')
    .action(async (flags: SourceFlags) => {
      const source = findSource(flags, process.env);
      if ('problem' in source) return command.error(`error: ${source.problem}`, { exitCode: 2 });
      await runImport(source.value, withDatabase);
    });
}

type WithDatabase = (use: (database: Database) => Promise<void>) => Promise<void>;

/** Opens the source first: if that fails, the target stays unchanged. */
async function runImport(settings: SourceSettings, withDatabase: WithDatabase): Promise<void> {
  const begunMs = performance.now();
  const source = await openSource(settings);
  try {
    await withDatabase(async (database) => {
      const imported = await importInto(database, source);
      const rows = Object.values(imported).reduce((sum, count) => sum + count, 0);
      print(`Imported ${rows} rows in ${((performance.now() - begunMs) / 1000).toFixed(1)} s.`);
      print('Start the service now, and run "placement-manage online-data-migrations" while it serves.');
    });
  } finally {
    source.close();
  }
}

/** @throws Error with the remedy, also where the target does not serve any more, or the role does not own its tables */
async function importInto(database: Database, source: SourceDatabase): Promise<Imported> {
  try {
    return await withPrivilegeRemedy(database, () => importDeployment(source, database, showImport(process.stdout)));
  } catch (error) {
    if (!isUnavailable(error) || isReadOnly(error)) throw error;
    throw new Error(`The target database does not serve any more: ${failureOf(error)}. ${howToContinue}`, {
      cause: error,
    });
  }
}

/** The flags that name the source of `placement-manage import`. */
type SourceFlags = { readonly from?: string; readonly fromConfig?: string };

/**
 * The source that the flags name. If the URL has no password, that of the environment variable MYSQL_PWD is used.
 *
 * @returns `problem` without the URL, which may hold a password
 * @throws Error if the configuration file cannot be read
 */
function findSource(
  { from, fromConfig }: SourceFlags,
  environment: Readonly<Record<string, string | undefined>>,
): { readonly value: SourceSettings } | { readonly problem: string } {
  if ((from === undefined) === (fromConfig === undefined)) return { problem: 'give either --from or --from-config' };
  const url = from ?? readConnection(fromConfig ?? '');
  if (url === undefined) return { problem: `${fromConfig} has no [placement_database] connection` };
  const reading = readSourceUrl(url);
  if ('problem' in reading) {
    return {
      problem: `${from === undefined ? `${fromConfig}: [placement_database] connection` : '--from'} ${reading.problem}`,
    };
  }
  return { value: { ...reading.value, password: reading.value.password ?? environment.MYSQL_PWD } };
}

/** Reads the URL from the placement.conf of the deployment to import. */
function readConnection(file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${file} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  const section = parseOsloIni(text, file).get('placement_database');
  const [url, parameters] = ['connection', 'connection_parameters'].map((name) => {
    const written = section?.get(name)?.at(-1)?.value;
    return written === undefined ? undefined : substitute(written, () => undefined);
  });
  return url === undefined ? undefined : withParameters(url, parameters ?? '');
}

/** A stream that shows the progress, such as standard output. */
type Screen = { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };

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
