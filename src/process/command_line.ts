import os from 'node:os';
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config/config_error.ts';
import { type LoadedConfig, load } from '../config/load.ts';
import type { Override } from '../config/sources.ts';
import { messageOf } from '../message_of.ts';
import { version } from '../version.ts';

/** The flags by which every command finds its configuration. */
export type ConfigFlags = { readonly configFile?: readonly string[]; readonly configDir?: readonly string[] };

/** Adds `--config-file` and `--config-dir` to a command. */
export function addConfigFlags(command: Command): Command {
  const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  return command
    .option('--config-file <file>', 'read this file instead of placement.conf; may be repeated', collect)
    .option('--config-dir <folder>', 'read the *.conf files of this folder; may be repeated', collect);
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

/** Prints what is no reason to end, a line each, on standard error. */
export function printWarnings(warnings: readonly (string | undefined)[]): void {
  for (const warning of warnings) if (warning !== undefined) console.error(`Warning: ${warning}`);
}

/** How a command ends that did not run: where it failed, and where its name was followed by no command. */
export type ExitCodes = { readonly failed: number; readonly noCommand: number };

/**
 * Parses the command line of this process and runs the command; its action sets `process.exitCode`. Commander tells wrong
 * usage, which ends with 2 as with upstream's commands; any other failure is one line for each problem, without a stack.
 *
 * @param explain makes a better problem of what an action threw, or gives it back
 */
export async function runCommand(
  command: Command,
  exitCodes: ExitCodes,
  explain: (problem: unknown) => unknown = (problem) => problem,
): Promise<void> {
  // Who reads may go early, as head does. console.log does not mind that, and nor is help to.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  throwInsteadOfExit(command.version(version, '--version', 'print the version of this program'));
  try {
    await command.parseAsync();
  } catch (thrown) {
    const error = explain(thrown);
    if (error instanceof CommanderError) {
      // Help that was asked for has the same code as help instead of a command.
      process.exitCode = error.exitCode === 0 ? 0 : error.code === 'commander.help' ? exitCodes.noCommand : 2;
      return;
    }
    const problems = error instanceof ConfigError ? error.problems : [messageOf(error)];
    for (const problem of problems) console.error(`${command.name()}: ${problem}`);
    process.exitCode = exitCodes.failed;
  }
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const each of command.commands) throwInsteadOfExit(each);
}
