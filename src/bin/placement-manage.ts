#!/usr/bin/env node
import '../process/node_version.ts';
import { Command } from 'commander';
import type { Database } from '../../db/connect.ts';
import { onlineMigrations } from '../../db/online/run.ts';
import { withPrivilegeRemedy } from '../../db/privileges.ts';
import { readRevision, stampRevision } from '../../db/revision.ts';
import type { Config } from '../config/config.ts';
import { withConfiguredDatabase } from '../manage/configured_database.ts';
import { addImportCommand } from '../manage/import_command.ts';
import { readMaxCount, runOnlineDataMigrations } from '../manage/online_data_migrations.ts';
import { addPolicyCommands } from '../manage/policy_commands.ts';
import { schemaProblem } from '../manage/schema_state.ts';
import { syncSchema } from '../manage/sync_schema.ts';
import { addConfigFlags, type ConfigFlags, loadConfig, printWarnings, runCommand } from '../process/command_line.ts';

const program = addConfigFlags(new Command('placement-manage')).description('Manages the database of Placement.');

const db = program.command('db').description('database commands');
db.action(() => db.outputHelp());
db.command('sync')
  .description('bring the schema of the database to the current version')
  .action(() => withDatabase(syncSchema));
db.command('version')
  .description('print the revision of the database')
  .action(() =>
    withDatabase(async (database) => {
      console.log((await readRevision(database)) ?? 'None');
    }),
  );
db.command('stamp')
  .description('say that the database is at a revision, and change nothing else')
  .argument('<version>', 'the revision; head, or base for none')
  .action((version: string) =>
    withDatabase((database) => withPrivilegeRemedy(database, () => stampRevision(database, version))),
  );
for (const command of [db.command('online_data_migrations'), program.command('online-data-migrations')]) {
  command
    .description('migrate old data, in batches, while the service serves')
    .option('--max-count <number>', 'migrate at most so many rows; without it, 500 at a time until nothing is left')
    .action(migrateData);
}
addImportCommand(program, withDatabase);
addPolicyCommands(program, () => {
  const { config, warnings } = loadConfig(program.opts<ConfigFlags>());
  printWarnings(warnings);
  return config.osloPolicy;
});
await runCommand(program, { failed: 1, noCommand: 1 });

async function migrateData(flags: { readonly maxCount?: string }): Promise<void> {
  const maxCount = flags.maxCount === undefined ? undefined : readMaxCount(flags.maxCount);
  if (flags.maxCount !== undefined && maxCount === undefined) {
    console.log('Must supply a positive value for max_count');
    process.exitCode = 127;
    return;
  }
  await withDatabase(async (database, { placement }) => {
    const schema = await schemaProblem(database);
    if (schema !== undefined && schema.is !== 'newer') {
      console.error(`placement-manage: ${schema.problem}`);
      // 1 would say that there is more to do.
      process.exitCode = 2;
      return;
    }
    const migrations = onlineMigrations(database, {
      projectId: placement.incompleteConsumerProjectId,
      userId: placement.incompleteConsumerUserId,
    });
    process.exitCode = await runOnlineDataMigrations(migrations, maxCount, (line) => console.log(line));
  });
}

function withDatabase(use: (database: Database, config: Config) => Promise<void>): Promise<void> {
  return withConfiguredDatabase(program.opts<ConfigFlags>(), use);
}
