import type { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { print } from '../text/print.ts';
import { showImport } from './import_command.ts';
import { loadFile } from './load/load_file.ts';
import { refuseUnwritable } from './upgrade_checks.ts';

/** Adds `load` to a program. */
export function addLoadCommand(
  program: Command,
  withDatabase: (use: (database: Database) => Promise<void>) => Promise<void>,
): void {
  program
    .command('load')
    .description('load very many resource providers from a file; with PostgreSQL also while the service serves')
    .argument('<file>', 'one JSON object a line: uuid, name, parent_provider_uuid, inventories, traits, aggregates')
    .action((file: string) =>
      withDatabase(async (database) => {
        await refuseUnwritable(database);
        // A database that no process has served yet lacks the standard traits and classes, which the lines name.
        await syncStandardNames(database);
        const begunMs = performance.now();
        const screen = showImport(process.stdout);
        screen.note(`Checking all lines of ${file}.`);
        const { found, written } = await loadFile(file, database, {
          checked: (lines) => screen.note(`All ${lines} lines are right. Loading them.`),
          loaded: (done, total) => screen.progress('resource_providers', done, total),
        });
        const seconds = ((performance.now() - begunMs) / 1000).toFixed(1);
        const others = written === found ? '' : `; ${found - written} of the file were there already`;
        print(`Loaded ${written} resource providers in ${seconds} s${others}.`);
      }),
    );
}
