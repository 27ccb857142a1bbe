import os from 'node:os';
import type { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import { type LoadedConfig, load } from '../config/load.ts';
import type { Override } from '../config/sources.ts';
import { messageOf, printError } from '../text/print.ts';

/** The flags that name the configuration of a command. */
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

/** The printed text of an error, a line for each problem. */
export const problemsOf = (error: unknown): readonly string[] =>
  error instanceof ConfigError ? error.problems : [messageOf(error)];
