import { Command, type Option } from 'commander';
import { addAggregateCommands } from './aggregate_commands.ts';
import { addAllocationCommands } from './allocation_commands.ts';
import { addFleetCommands } from './apply_command.ts';
import { addCandidateCommands } from './candidate_commands.ts';
import { addClassCommands } from './class_commands.ts';
import { addCompletion } from './completion.ts';
import { addConnectionOptions } from './connection.ts';
import { addConsumerCommands } from './consumer_commands.ts';
import { addDemoCommand } from './demo_command.ts';
import { addDrainCommands } from './drain_commands.ts';
import { exitCodeHelp } from './exit_codes.ts';
import { addHoldingsCommand } from './holding_commands.ts';
import { addInventoryCommands } from './inventory_commands.ts';
import { addLimitCommands } from './limit_commands.ts';
import { addProviderCommands } from './provider_commands.ts';
import { addOutputOptions, shellOf } from './shell.ts';
import { fields } from './table.ts';
import { addTraitCommands } from './trait_commands.ts';
import { addUsageCommands } from './usage_commands.ts';
import { addWaitingCommands } from './waiting_commands.ts';
import { addWatchCommand } from './watch_command.ts';

/** The command `placement`, ready to be parsed. */
export function placementCommand(): Command {
  const program = new Command('placement')
    .description('Looks at a placement service and changes what is in it.')
    .showHelpAfterError('(add --help for the commands and options)')
    .configureHelp({ showGlobalOptions: true });
  addOutputOptions(program);
  addConnectionOptions(program);
  addProviderCommands(program);
  addFleetCommands(program);
  addInventoryCommands(program);
  addTraitCommands(program);
  addAggregateCommands(program);
  addClassCommands(program);
  addAllocationCommands(program);
  addWaitingCommands(program);
  addDrainCommands(program);
  addConsumerCommands(program);
  addHoldingsCommand(program);
  addUsageCommands(program);
  addLimitCommands(program);
  addCandidateCommands(program);
  addWatchCommand(program);
  addDemoCommand(program);
  program
    .command('version')
    .description('show which microversions the service speaks')
    .action(async (_options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const server = await placement.serverVersion();
      print(server, () =>
        fields([
          ['spoken', server.version],
          ['oldest of the service', server.min ?? 'it knows no microversions'],
          ['newest of the service', server.max],
        ]),
      );
    });
  addCompletion(program);
  program.addHelpText('after', exitCodeHelp());
  refuseGivenTwice(program);
  return program;
}

/**
 * Refuses options with one value that are given twice, for a command and its subcommands. Otherwise the last value
 * would win without a message.
 */
function refuseGivenTwice(command: Command): void {
  for (const option of command.options.filter(hasOneValue)) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' is given twice. Give it once.`);
      isGiven = true;
    });
  }
  for (const each of command.commands) refuseGivenTwice(each);
}

/** An option that may be repeated has a function that collects its values, and no default value. */
const hasOneValue = ({ required, parseArg, argChoices, defaultValue }: Option): boolean =>
  required && (parseArg === undefined || argChoices !== undefined || defaultValue !== undefined);
