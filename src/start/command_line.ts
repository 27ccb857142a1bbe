import os from 'node:os';
import type { Command } from 'commander';
import { hasSqlstate, isUnavailable, sqlstate } from '../../db/engine/failures.ts';
import { ConfigError } from '../config/config.ts';
import { type LoadedConfig, load } from '../config/load.ts';
import type { Override } from '../config/sources.ts';
import { ListenError } from '../http/server/listen.ts';
import { messageOf, printError } from '../text/print.ts';
import { sysexits } from '../text/sysexits.ts';

/** The flags that tell a command where its configuration is. */
export type ConfigFlags = { readonly configFile?: readonly string[]; readonly configDir?: readonly string[] };

/** Adds `--config-file` and `--config-dir` to a command. */
export function addConfigFlags(command: Command): Command {
  const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  return command
    .option('--config-file <file>', 'read this file instead of placement.conf; may be repeated', collect)
    .option('--config-dir <folder>', 'read the *.conf files of this folder; may be repeated', collect);
}

/** The root folder where the user has no home, as in a container whose user has no name and no HOME. */
function homeFolder(): string {
  try {
    return os.homedir();
  } catch {
    return '/';
  }
}

/** The configuration of this process. @throws ConfigError */
export function loadConfig(flags: ConfigFlags, overrides: readonly Override[] = []): LoadedConfig {
  return load({
    configFiles: flags.configFile ?? [],
    configDirs: flags.configDir ?? [],
    env: process.env,
    home: homeFolder(),
    cwd: process.cwd(),
    overrides,
  });
}

/** Prints warnings on standard error, one line each. */
export function printWarnings(warnings: readonly (string | undefined)[]): void {
  for (const warning of warnings) if (warning !== undefined) printError(`Warning: ${warning}`);
}

/** What is printed of an error, a line for each problem. */
export const problemsOf = (error: unknown): readonly string[] =>
  error instanceof ConfigError ? error.problems : [messageOf(error)];

/**
 * The exit code for a failure: 78 if the configuration or a policy file is wrong, also if it names a database that the
 * server does not have; 77 if the database refuses the role (password, privileges); 69 if the database cannot be
 * reached; 71 if the address cannot be listened on; and 1 for anything else.
 */
export function exitCodeOf(error: unknown): number {
  // Before the errors of the network: the name of a host may be unknown in both.
  if (error instanceof ListenError) return sysexits.osError;
  if (error instanceof ConfigError || hasSqlstate(error, sqlstate.unknownDatabase)) return sysexits.config;
  if (isRefusedLogin(error) || hasSqlstate(error, sqlstate.insufficientPrivilege)) return sysexits.noPermission;
  if (isUnavailable(error)) return sysexits.unavailable;
  return error instanceof Error && error.cause !== undefined ? exitCodeOf(error.cause) : 1;
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
