#!/usr/bin/env node
import '../start/node_version.ts';
import { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { onlineMigrations } from '../../db/online/run.ts';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { raiseSequences } from '../../db/schema/id_sequences.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { withPrivilegeRemedy } from '../../db/schema/privileges.ts';
import { readRevision, stampRevision } from '../../db/schema/revision.ts';
import { refuseUnwatchedTables } from '../../db/schema/watched_tables.ts';
import { readConsumer } from '../../db/statements/consumers/consumer_row.ts';
import type { Config } from '../config/config.ts';
import { withConfiguredDatabase } from '../manage/configured_database.ts';
import { addImportCommand } from '../manage/import_command.ts';
import { addLimitCommands } from '../manage/limit_commands.ts';
import { addLoadCommand } from '../manage/load_command.ts';
import { readMaxCount, runOnlineDataMigrations } from '../manage/online_data_migrations.ts';
import { addPolicyCommands } from '../manage/policy_commands.ts';
import { addTokenCommands } from '../manage/token_commands.ts';
import { unwritableProblem } from '../manage/upgrade_checks.ts';
import { incompleteOwner, type Owner, ownerOr } from '../placement/consumer.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { addConfigFlags, type ConfigFlags, loadConfig, printWarnings, problemsOf } from '../start/config_flags.ts';
import { describeDatabase } from '../start/database.ts';
import { exitCodeOf } from '../start/exit_code.ts';
import { addCommandGroup, runCommand } from '../start/run_command.ts';
import { print, printError } from '../text/print.ts';

const program = addConfigFlags(new Command('placement-manage')).description('Manages the database of Placement.');

const db = addCommandGroup(program, 'db', 'database commands');
db.command('sync')
  .description('bring the schema of the database to the current version')
  .action(() => withDatabase(syncSchema));
db.command('version')
  .description('print the revision of the database')
  .action(() =>
    withDatabase(async (database) => {
      print((await readRevision(database)) ?? 'None');
    }),
  );
db.command('stamp')
  .description('record that the database is at a revision, and change nothing else')
  .argument('<version>', 'the revision; head, or base for none')
  .action((version: string) =>
    withDatabase((database, { placementDatabase }) =>
      withPrivilegeRemedy(database, async () => {
        await stampRevision(database, version);
        const stamped = (await readRevision(database)) ?? 'no revision';
        printError(`The ${describeDatabase(placementDatabase)} is recorded at ${stamped}; nothing else was changed.`);
      }),
    ),
  );
for (const command of [db.command('online_data_migrations'), program.command('online-data-migrations')]) {
  command
    .description('migrate old data, in batches, while the service serves')
    .option('--max-count <number>', 'migrate at most this many rows; default: batches of 500 until no rows are left')
    .action(migrateData);
}
addImportCommand(program, (use) => withConfiguredDatabase(program.opts<ConfigFlags>(), use, { begins: true }));
addLoadCommand(program, withDatabase);
addLimitCommands(program, () => program.opts<ConfigFlags>());
addTokenCommands(program, () => program.opts<ConfigFlags>());
addPolicyCommands(
  program,
  () => {
    const { config, warnings } = loadConfig(program.opts<ConfigFlags>());
    printWarnings(warnings);
    return config.osloPolicy;
  },
  ownerOf,
);
await runCommand(program, { failed: exitCodeOf, noCommand: 1, problemsOf });

/**
 * `placement-manage db sync`. Standard output stays empty, as with upstream's command. Standard error gets one line
 * that names the database and its state.
 */
async function syncSchema(database: Database, { placementDatabase }: Config): Promise<void> {
  const applied = await migrateToLatest(database);
  await refuseUnwatchedTables(database);
  await raiseSequences(database);
  const name = describeDatabase(placementDatabase);
  const state = `${migrationNames.at(-1)}, revision ${await readRevision(database)}`;
  const did = applied.length === 0 ? 'nothing had to be migrated' : `applied ${applied.join(', ')}`;
  printError(`The ${name} is at ${state}: ${did}.`);
}

async function migrateData(flags: { readonly maxCount?: string }): Promise<void> {
  const maxCount = flags.maxCount === undefined ? undefined : readMaxCount(flags.maxCount);
  if (flags.maxCount !== undefined && maxCount === undefined) {
    print('Must supply a positive value for max_count');
    process.exitCode = 127;
    return;
  }
  await withDatabase(async (database, config) => {
    const problem = await unwritableProblem(database);
    if (problem !== undefined) {
      printError(`placement-manage: ${problem}`);
      // An exit code of 1 would mean that there are more rows to migrate.
      process.exitCode = 2;
      return;
    }
    const migrations = onlineMigrations(database, incompleteOwner(config));
    process.exitCode = await runOnlineDataMigrations(migrations, maxCount, (line) => print(line));
  });
}

/** The owner of a consumer; undefined if there is none. */
async function ownerOf(consumer: string): Promise<Owner | undefined> {
  let owner: Owner | undefined;
  await withDatabase(async (database, config) => {
    const found = await readConsumer(database, isUuidLike(consumer) ? normalUuid(consumer) : consumer);
    if (found !== undefined) owner = ownerOr(incompleteOwner(config), found);
  });
  return owner;
}

function withDatabase(use: (database: Database, config: Config) => Promise<void>): Promise<void> {
  return withConfiguredDatabase(program.opts<ConfigFlags>(), use);
}
