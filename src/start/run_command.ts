import { type Command, CommanderError, type Option } from 'commander';
import { version } from '../config/version.ts';
import { escapeControlsInLines, messageOf, printError } from '../text/print.ts';
import { nearName } from '../text/strings.ts';

/**
 * Adds a group of commands. By itself it prints its help and is no failure, as with upstream's `placement-manage db`. A word that is none
 * of its commands is an error, with the command that was probably meant.
 */
export function addCommandGroup(program: Command, name: string, description: string): Command {
  const group = program.command(name).description(description).allowExcessArguments();
  return group.action(() => {
    const [word] = group.args;
    if (word === undefined) return group.outputHelp();
    const names = group.commands.map((command) => command.name());
    const near = nearName(word, names);
    group.error(
      `error: unknown command '${word}'\n(${near === undefined ? `There are ${names.join(', ')}.` : `Did you mean ${near}?`})`,
    );
  });
}

/** Ends a program that could not do what the command line says. */
type Endings = {
  /** The exit code for a command that failed, by its error. */
  readonly failed: (error: unknown) => number;
  /** The exit code for a command line without a subcommand. */
  readonly noCommand: number;
  /** The printed text of an error, a line for each problem. Default: its message. */
  readonly problemsOf?: (error: unknown) => readonly string[];
};

/**
 * Parses the command line of this process and runs the command. The command's action sets `process.exitCode`. Commander
 * reports wrong usage; the exit code is then 2, as with upstream's commands. For any other failure, also where the output
 * cannot be written, one line for each problem is printed, without a stack.
 *
 * @param explain turns an error of an action into one with a better message, or returns it unchanged
 * @param argv the command line, as `process.argv` has it
 */
export async function runCommand(
  command: Command,
  { failed, noCommand, problemsOf = (error) => [messageOf(error)] }: Endings,
  explain: (problem: unknown) => unknown = (problem) => problem,
  argv: readonly string[] = process.argv,
): Promise<void> {
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error) => {
    // A program that reads the output, such as head, may close it early.
    if ('code' in error && error.code === 'EPIPE') return;
    printError(`${command.name()}: The output cannot be written: ${error.message}`);
    process.exitCode = failed(error);
  });
  throwInsteadOfExit(command.version(version, '--version', 'print the version of this program'));
  refuseGivenTwice(command);
  try {
    await command.parseAsync(argv);
  } catch (thrown) {
    const error = explain(thrown);
    if (error instanceof CommanderError) {
      // Commander has one code for requested help and for help because a command is missing. The exit codes differ.
      process.exitCode = error.exitCode === 0 ? 0 : error.code === 'commander.help' ? noCommand : 2;
      return;
    }
    for (const problem of problemsOf(error)) printError(`${command.name()}: ${problem}`);
    process.exitCode = failed(error);
  }
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  // A group takes further words, to name an unknown command, and its commands would: `online_data_migrations 50` would migrate all rows.
  if (command.commands.length === 0) command.allowExcessArguments(false);
  // The words of the command line may come from a program.
  command.configureOutput({ outputError: (text, write) => write(escapeControlsInLines(text)) });
  for (const each of command.commands) throwInsteadOfExit(each);
}

/**
 * Refuses repeated options with one value, for a command and its subcommands. Otherwise the last value
 * would win without a message.
 */
function refuseGivenTwice(command: Command): void {
  for (const option of command.options.filter((each) => each.required || each.optional)) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven && hasOneValue(option, command)) {
        command.error(`error: option '${option.flags}' is given twice. Give it once.`);
      }
      isGiven = true;
    });
  }
  for (const each of command.commands) refuseGivenTwice(each);
}

/**
 * Whether an option that was given has one value. One that may be repeated collects its values in a list or an object, and has no default:
 * so an option has one value if it has a default, or if its value is a text or a number.
 */
const hasOneValue = (option: Option, command: Command): boolean =>
  option.defaultValue !== undefined ||
  ['string', 'number'].includes(typeof command.getOptionValue(option.attributeName()));
