import os from 'node:os';
import { type Command, CommanderError } from 'commander';
import { hasSqlstate, isUnavailable, sqlstate } from '../../db/engine/failures.ts';
import { ConfigError } from '../config/config.ts';
import { type LoadedConfig, load } from '../config/load.ts';
import type { Override } from '../config/sources.ts';
import { version } from '../config/version.ts';
import { ListenError } from '../http/server/listen.ts';
import { escapeControlsInLines, messageOf, printError } from '../text/print.ts';
import { nearName } from '../text/strings.ts';

/** The flags that tell a command where its configuration is. */
export type ConfigFlags = { readonly configFile?: readonly string[]; readonly configDir?: readonly string[] };

/** Adds `--config-file` and `--config-dir` to a command. */
export function addConfigFlags(command: Command): Command {
  const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  return command
    .option('--config-file <file>', 'read this file instead of placement.conf; may be repeated', collect)
    .option('--config-dir <folder>', 'read the *.conf files of this folder; may be repeated', collect);
}

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

/** The configuration of this process. @throws ConfigError */
export function loadConfig(flags: ConfigFlags, overrides: readonly Override[] = []): LoadedConfig {
  return load({
    configFiles: flags.configFile ?? [],
    configDirs: flags.configDir ?? [],
    env: process.env,
    home: os.homedir(),
    cwd: process.cwd(),
    overrides,
  });
}

/** Prints warnings on standard error, one line each. */
export function printWarnings(warnings: readonly (string | undefined)[]): void {
  for (const warning of warnings) if (warning !== undefined) printError(`Warning: ${warning}`);
}

/** The exit codes for a command that failed, by its error, and for a command line without a subcommand. */
type ExitCodes = { readonly failed: (error: unknown) => number; readonly noCommand: number };

/**
 * Parses the command line of this process and runs the command. The command's action sets `process.exitCode`. Commander
 * reports wrong usage; the exit code is then 2, as with upstream's commands. For any other failure one line for each
 * problem is printed, without a stack.
 *
 * @param explain turns an error of an action into one with a better message, or returns it unchanged
 * @param argv the command line, as `process.argv` has it
 */
export async function runCommand(
  command: Command,
  exitCodes: ExitCodes,
  explain: (problem: unknown) => unknown = (problem) => problem,
  argv: readonly string[] = process.argv,
): Promise<void> {
  // A program that reads the output, such as head, may close it early. That is no error for console.log, so it must not
  // be an error for the help texts either.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  throwInsteadOfExit(command.version(version, '--version', 'print the version of this program'));
  try {
    await command.parseAsync(argv);
  } catch (thrown) {
    const error = explain(thrown);
    if (error instanceof CommanderError) {
      // Commander has one code for requested help and for help because a command is missing. The exit codes differ.
      process.exitCode = error.exitCode === 0 ? 0 : error.code === 'commander.help' ? exitCodes.noCommand : 2;
      return;
    }
    const problems = error instanceof ConfigError ? error.problems : [messageOf(error)];
    for (const problem of problems) printError(`${command.name()}: ${problem}`);
    process.exitCode = exitCodes.failed(error);
  }
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  // The words of the command line may come from a program.
  command.configureOutput({ outputError: (text, write) => write(escapeControlsInLines(text)) });
  for (const each of command.commands) throwInsteadOfExit(each);
}

/** Exit codes of commands for failures that supervisors and scripts may tell apart; numbers and names are of sysexits.h. */
const exitCodes = { failed: 1, unavailable: 69, osError: 71, noPermission: 77, config: 78 } as const;

/**
 * The exit code for a failure: 78 if the configuration or a policy file is wrong, also if it names a database that the
 * server does not have; 77 if the database refuses the role (password, privileges); 69 if the database cannot be
 * reached; 71 if the address cannot be listened on; and 1 for anything else.
 */
export function exitCodeOf(error: unknown): number {
  // Before the errors of the network: the name of a host may be unknown in both.
  if (error instanceof ListenError) return exitCodes.osError;
  if (error instanceof ConfigError || hasSqlstate(error, sqlstate.unknownDatabase)) return exitCodes.config;
  if (isRefusedLogin(error) || hasSqlstate(error, sqlstate.insufficientPrivilege)) return exitCodes.noPermission;
  if (isUnavailable(error)) return exitCodes.unavailable;
  return error instanceof Error && error.cause !== undefined ? exitCodeOf(error.cause) : exitCodes.failed;
}

/** Whether the server refuses the login: an unknown role, a wrong password, or no authentication that allows it. */
export const isRefusedLogin = (error: unknown): boolean => hasSqlstate(error, '28000', '28P01');

/** How long an orderly end may take. A supervisor of the process usually waits 30 s. */
const patienceMs = 29_000;

/**
 * Ends the process on SIGTERM or SIGINT: the first signal starts an orderly end with exit code 0, the second ends it at
 * once.
 *
 * @param stop closes everything; then the process ends. If it fails or takes too long, the exit code is 1.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(signal === 'SIGINT' ? 130 : 143);
    stopping = true;
    setTimeout(() => fail('it took too long'), patienceMs).unref();
    stop(signal).then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
}

function fail(reason: unknown): never {
  printError(`The process could not end in order: ${messageOf(reason)}`);
  process.exit(1);
}
