#!/usr/bin/env node
import '../start/node_version.ts';
import { Command } from 'commander';
import { withConfiguredDatabase } from '../manage/configured_database.ts';
import { checkUpgrade } from '../manage/upgrade_checks.ts';
import { reportJson, reportTable } from '../manage/upgrade_report.ts';
import { addConfigFlags, type ConfigFlags, problemsOf } from '../start/config_flags.ts';
import { runCommand } from '../start/run_command.ts';
import { print } from '../text/print.ts';

const program = addConfigFlags(new Command('placement-status')).description('Checks the state of Placement.');

const upgrade = program.command('upgrade').description('commands about upgrades');
upgrade.option('--json', 'print the results as JSON');
upgrade
  .command('check')
  .description(
    'check whether the deployment is ready for an upgrade: 0 yes, 1 warning, 2 failure, 255 unexpected error',
  )
  .action(check);
// An exit code of 1 or 2 would look like a result of the checks.
await runCommand(program, { failed: () => 255, noCommand: 2, problemsOf });

async function check(): Promise<void> {
  await withConfiguredDatabase(program.opts<ConfigFlags>(), async (database, { osloPolicy }) => {
    const results = await checkUpgrade(database, osloPolicy.policyFile);
    print(upgrade.opts<{ json?: true }>().json ? reportJson(results) : reportTable(results));
    process.exitCode = Math.max(...results.map(({ result }) => result));
  });
}
