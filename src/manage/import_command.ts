import type { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { print } from '../text/print.ts';
import { importDeployment } from './import/import_deployment.ts';
import { openSource } from './import/source.ts';
import type { SourceSettings } from './import/source_url.ts';
import { showImport } from './import_progress.ts';
import { findSource, type SourceFlags } from './import_source.ts';

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
      const imported = await importDeployment(source, database, showImport(process.stdout));
      const rows = Object.values(imported).reduce((sum, count) => sum + count, 0);
      print(`Imported ${rows} rows in ${((performance.now() - begunMs) / 1000).toFixed(1)} s.`);
      print('Start the service now, and run "placement-manage online-data-migrations" while it serves.');
    });
  } finally {
    source.close();
  }
}
