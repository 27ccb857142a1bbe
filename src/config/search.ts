import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ConfigError } from './config.ts';
import { type IniSections, parseOsloIni } from './oslo_ini.ts';

/** The places from which configuration may be read. */
export type ConfigLocations = {
  /** From --config-file, in order. With these, placement.conf is not searched for. */
  readonly configFiles?: readonly string[];
  /** From --config-dir, in order. With these, placement.conf.d is not searched for. */
  readonly configDirs?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home directory. */
  readonly home: string;
  /** The directory that relative paths start from. */
  readonly cwd: string;
  /** `/etc`, except in tests. */
  readonly etc?: string;
};

/** A file that was read. */
export type ConfigFile = { readonly file: string; readonly sections: IniSections };

/** The files of a configuration, and the directories of further files. */
export type FoundConfig = {
  /** In the order in which they are read. If two files set an option, the later file wins. */
  readonly files: readonly ConfigFile[];
  /** A file that an option names is searched for in these directories, in order (oslo.config's `find_file`). */
  readonly directories: readonly string[];
  /** If no such directory has the file, its path is in this directory. */
  readonly home: string;
};

/**
 * Finds and parses the files, as oslo.config does: placement.conf is the first of `~/.placement/`, `~/`,
 * `/etc/placement/`, `/etc/` (and the two of a snap). placement.conf.d is searched for separately in the same directories.
 * All its `*.conf` files are read after placement.conf, in the order of their names. OS_PLACEMENT_CONFIG_DIR names the
 * directory of placement.conf; the file must then exist.
 *
 * @throws ConfigError with all problems at once: named files or directories that are missing, and files that do not
 * parse.
 */
export function findConfig(locations: ConfigLocations): FoundConfig {
  const { configFiles = [], configDirs = [], env, cwd } = locations;
  const absolute = (name: string): string =>
    path.resolve(
      cwd,
      name.replace(/^~(?=\/|$)/, () => locations.home),
    );
  const directories = standardDirectories(locations);
  const standard = (name: string): string[] =>
    directories
      .map((directory) => path.join(directory, name))
      .filter(existsSync)
      .slice(0, 1);

  const envDirectory = env.OS_PLACEMENT_CONFIG_DIR?.trim();
  const named = configFiles.map(absolute);
  const defaultFiles = envDirectory
    ? [absolute(path.join(envDirectory, 'placement.conf'))]
    : standard('placement.conf');
  const mainFiles = named.length > 0 ? named : defaultFiles;
  const namedDirectories = configDirs.map(absolute);
  const defaultDirectories = namedDirectories.length > 0 ? [] : standard('placement.conf.d');

  // Files from the command line win over files found by search. So a placement.conf.d that was found by search is read
  // before a named file.
  const beforeDirectories = named.length > 0 ? [] : mainFiles;
  const afterDirectories = named.length > 0 ? mainFiles : [];
  const problems: string[] = [];
  const attempt = <T>(read: () => readonly T[]): readonly T[] => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return [];
    }
  };
  const inDirectory = (directory: string): readonly string[] => attempt(() => configFilesIn(directory));
  const order = [
    ...beforeDirectories,
    ...defaultDirectories.flatMap(inDirectory),
    ...afterDirectories,
    ...namedDirectories.flatMap(inDirectory),
  ];
  const files = order.flatMap((file) => attempt(() => [{ file, sections: parseOsloIni(readText(file), file) }]));
  if (problems.length > 0) throw new ConfigError(problems);

  const mainDirectories = mainFiles.map((file) => path.dirname(file)).reverse();
  return {
    files,
    directories: [...namedDirectories, ...mainDirectories, ...directories],
    home: mainDirectories[0] ?? path.join(locations.etc ?? '/etc', 'placement'),
  };
}

/** The path of a further file: the first name that exists, else the path for the first name. */
export function locate(names: readonly [string, ...string[]], found: FoundConfig): string {
  const candidates = names.flatMap((name) => found.directories.map((directory) => path.resolve(directory, name)));
  return candidates.find((candidate) => existsSync(candidate)) ?? path.resolve(found.home, names[0]);
}

function standardDirectories({ env, home, etc = '/etc' }: ConfigLocations): readonly string[] {
  return [
    path.join(home, '.placement'),
    home,
    path.join(etc, 'placement'),
    etc,
    ...[env.SNAP_COMMON, env.SNAP].flatMap((snap) => (snap ? [path.join(snap, 'etc', 'placement')] : [])),
  ];
}

function configFilesIn(directory: string): readonly string[] {
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith('.conf') && !name.startsWith('.'));
    return names.sort().map((name) => path.join(directory, name));
  } catch (error) {
    throw new ConfigError([`${directory}: the configuration directory cannot be read: ${reason(error)}.`]);
  }
}

function readText(file: string): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new ConfigError([`${file}: the configuration file cannot be read: ${reason(error)}.`]);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError([`${file}: the configuration file is not UTF-8. Save it in this encoding.`]);
  }
}

function reason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return 'it does not exist';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'EISDIR') return 'it is a directory';
  if (code === 'ENOTDIR') return 'it is not a directory';
  return String(error);
}
