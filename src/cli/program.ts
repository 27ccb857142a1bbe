import { Command } from 'commander';
import { addConnectionOptions } from './connection.ts';
import { exitCodeHelp } from './exit_codes.ts';
import { addOutputOptions, shellOf } from './shell.ts';
import { fields } from './table.ts';

/** Adds commands to the program. */
type Adds = (program: Command) => void;

/**
 * The first words of commands, and the file that has them. A command line loads only its file: loading all files would take most of the
 * time of a short command.
 */
const groups: readonly (readonly [words: readonly string[], load: () => Promise<Adds>])[] = [
  [['provider'], async () => (await import('./provider_commands.ts')).addProviderCommands],
  [['apply', 'export'], async () => (await import('./apply_command.ts')).addFleetCommands],
  [['inventory'], async () => (await import('./inventory_commands.ts')).addInventoryCommands],
  [['trait'], async () => (await import('./name_commands.ts')).addTraitCommands],
  [['aggregate'], async () => (await import('./aggregate_commands.ts')).addAggregateCommands],
  [['class'], async () => (await import('./name_commands.ts')).addClassCommands],
  [['allocation'], async () => (await import('./allocation_commands.ts')).addAllocationCommands],
  [['waiting'], async () => (await import('./waiting_commands.ts')).addWaitingCommands],
  [['drain', 'undrain', 'release'], async () => (await import('./drain_commands.ts')).addDrainCommands],
  [['consumer'], async () => (await import('./consumer_commands.ts')).addConsumerCommands],
  [['holdings'], async () => (await import('./holding_commands.ts')).addHoldingsCommand],
  [['usage'], async () => (await import('./usage_commands.ts')).addUsageCommands],
  [['limit'], async () => (await import('./limit_commands.ts')).addLimitCommands],
  [['candidate'], async () => (await import('./candidate_commands.ts')).addCandidateCommands],
  [['watch'], async () => (await import('./watch_command.ts')).addWatchCommand],
  [['demo'], async () => (await import('./demo_command.ts')).addDemoCommand],
  [['version'], async () => addVersionCommand],
  [['completion', '__complete'], async () => (await import('./completion.ts')).addCompletion],
];

/**
 * The command `placement`, ready to be parsed.
 *
 * @param words the command line, without the program: if it names a command, the other commands are not loaded
 */
export async function placementCommand(words: readonly string[]): Promise<Command> {
  const program = new Command('placement')
    .description('Looks at a placement service and changes what is in it.')
    .showHelpAfterError('(add --help for the commands and options)')
    .configureHelp({ showGlobalOptions: true });
  addOutputOptions(program);
  addConnectionOptions(program);
  for (const add of await Promise.all(groupsFor(firstWord(program, words)).map(([, load]) => load()))) add(program);
  program.addHelpText('after', exitCodeHelp());
  return program;
}

/** The group of a command; all groups for an unknown word, and for words that concern all commands. */
function groupsFor(word: string | undefined): typeof groups {
  if (word === '__complete') return groups;
  const own = groups.filter(([words]) => words.some((one) => one === word));
  return own.length === 0 ? groups : own;
}

/** The first word that is neither an option of the program nor the value of one. */
function firstWord({ options }: Command, words: readonly string[]): string | undefined {
  let isValue = false;
  return words.find((word) => {
    const isSkipped = isValue || word.startsWith('-');
    isValue = !isValue && options.some(({ required, long, short }) => required && (long === word || short === word));
    return !isSkipped;
  });
}

function addVersionCommand(program: Command): void {
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
}
