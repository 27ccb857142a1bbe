import type { Command } from 'commander';
import { versionAsOption } from '../cli/connection.ts';
import { exitCodeOf } from '../cli/exit_codes.ts';
import { placementCommand } from '../cli/program.ts';
import { withRemedy } from '../cli/remedies.ts';
import { runCommand } from '../start/run_command.ts';

/** The program placement: runs the command line of this process. */
export async function runPlacement(): Promise<void> {
  const argv = versionAsOption(process.argv);
  const program = await placementCommand(argv.slice(2));
  let ran: Command | undefined;
  program.hook('preAction', (_program, command) => {
    ran = command;
  });
  await runCommand(program, { failed: exitCodeOf, noCommand: 2 }, (problem) => withRemedy(problem, ran), argv);
}
