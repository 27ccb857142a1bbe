import { existsSync } from 'node:fs';
import { versionOfText } from '../placement/versions.ts';
import { socketFileOf } from '../text/socket_address.ts';
import { nearName } from '../text/strings.ts';
import {
  type Config,
  ConfigError,
  configOf,
  groups,
  isMemberSection,
  knownNames,
  type Option,
  options,
  variableOf,
} from './config.ts';
import { withParameters } from './database_url.ts';
import { substitute } from './oslo_ini.ts';
import { type ConfigFile, type ConfigLocations, type FoundConfig, findConfig, locate } from './search.ts';
import { explain, type Override, openSources, type Sources, type Written } from './sources.ts';

/** An option with its value in effect, for messages and `--show-config`. */
export type Setting = {
  readonly option: Option;
  /** As in `Config`. */
  readonly value: unknown;
  /** Undefined if the value is the default. */
  readonly written: Written | undefined;
  /** Whether the value must not be shown: the option is secret, or its value refers to a secret option. */
  readonly secret: boolean;
};

/** The configuration, and the source of each value. */
export type LoadedConfig = {
  readonly config: Config;
  /** Every option, in the order of `./option_table.ts`. */
  readonly settings: readonly Setting[];
  /** The files that were read, in order. If two files set an option, the later file wins. */
  readonly files: readonly string[];
  /** One sentence for each setting that is probably a mistake, but no error. */
  readonly warnings: readonly string[];
  /** The options that probably should name the database but do not: `placement.conf:2: [placement_database] conection`. */
  readonly nearDatabase: readonly string[];
};

/**
 * Finds, reads and validates the configuration. Precedence: overrides (the command line), the environment
 * (`OS_<GROUP>__<OPTION>`), files (the later one first), DATABASE_URL for `[placement_database] connection`,
 * `DEFAULT_OS_<GROUP>__<OPTION>`, `defaultConfig`.
 *
 * @throws ConfigError with a line for every mistake: its source, section, option and value, and the allowed values. If a
 * file does not parse, the error is only about that.
 */
export function load(input: ConfigLocations & { readonly overrides?: readonly Override[] }): LoadedConfig {
  const found = findConfig(input);
  const sources = openSources(found.files, input.env, input.overrides ?? []);
  const { settings, problems } = settleAll(sources, found);
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    config: configOf(settings),
    settings,
    files: found.files.map(({ file }) => file),
    warnings: findWarnings(found.files, input.env, settings, sources.pluginGroup),
    nearDatabase: findNearDatabase(found.files),
  };
}

const [connection, connectionParameters] = ['connection', 'connection_parameters'].map((wanted) =>
  options.find(({ group, name }) => group === 'placement_database' && name === wanted),
);

/** Sets the value of each option. If a value refers to other options, their values are set first. */
function settleAll(
  sources: Sources,
  found: FoundConfig,
): { settings: readonly Setting[]; problems: readonly string[] } {
  const problems = new Set<string>();
  const settled = new Map<Option, Setting>();
  const unfinished = new Set<Option>();

  function settle(option: Option): Setting {
    const known = settled.get(option);
    if (known !== undefined) return known;
    unfinished.add(option);
    const written = sources.find(option);
    const setting = written === undefined ? unset(option) : read(option, written);
    unfinished.delete(option);
    settled.set(option, setting);
    return setting;
  }

  function unset(option: Option): Setting {
    return { option, value: beside(option, option.default), written: undefined, secret: option.secret === true };
  }

  function read(option: Option, written: Written): Setting {
    let secret = option.secret === true;
    let loop = false;
    const lookup = (name: string): string | undefined => {
      const target = sources.named(name, option);
      if (target === undefined || 'text' in target) return target?.text;
      if (unfinished.has(target.option)) {
        loop = true;
        return undefined;
      }
      const setting = settle(target.option);
      secret ||= setting.secret;
      return asPythonText(setting.value);
    };
    const whole = written.literal ? written.texts : written.texts.map((text) => substitute(text, lookup));
    const texts = option === connection ? whole.map(withConfiguredParameters) : whole;
    const reading = loop
      ? { problem: 'must not refer to itself; write $$ for a dollar sign' }
      : option.type.read(texts);
    if ('problem' in reading) problems.add(explain(option, written, reading.problem, secret ? written.texts : texts));
    const value = 'problem' in reading ? option.default : (reading.value ?? option.default);
    return { option, value: beside(option, value), written, secret };
  }

  function withConfiguredParameters(url: string): string {
    const parameters = connectionParameters && settle(connectionParameters).value;
    return typeof parameters === 'string' ? withParameters(url, parameters) : url;
  }

  function beside(option: Option, value: unknown): unknown {
    if (!option.beside) return value;
    if (Array.isArray(value)) return value.map((name) => locate([String(name)], found));
    const file = String(value);
    // If policy_file is not set, upstream also reads the older policy.json. The YAML parser can read it: JSON is YAML,
    // too.
    return locate(value === option.default ? [file, file.replace(/\.yaml$/, '.json')] : [file], found);
  }

  const settings = sources.options.map(settle);
  for (const problem of [...contradictions(settings), ...mistakesOfMembers(found.files)]) problems.add(problem);
  return { settings, problems: [...problems] };
}

/** A value as Python's `str` writes it. A reference to an option is replaced with this text. */
function asPythonText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return Array.isArray(value) ? value.join(',') : String(value);
}

const settingOf = (settings: readonly Setting[], group: string, name: string): Setting | undefined =>
  settings.find(({ option }) => option.group === group && option.name === name);

/**
 * An error for a value that `load` accepts, and that a part of the service finds wrong when it reads the value. The
 * message names the option and the source of the value, as the messages of `load` do.
 */
export function wrongValue(
  { settings }: LoadedConfig,
  [group, name]: readonly [group: string, name: string],
  problem: string,
): ConfigError {
  const setting = settingOf(settings, group, name);
  if (setting?.written === undefined) return new ConfigError([`[${group}] ${name}: ${problem}.`]);
  const { option, value, written, secret } = setting;
  return new ConfigError([explain(option, written, problem, secret ? written.texts : [String(value)])]);
}

/** Mistakes in combinations of values that are valid by themselves. */
function contradictions(settings: readonly Setting[]): readonly string[] {
  return [...halfOfTls(settings), ...defaultAboveNewest(settings), ...portOfSocket(settings)];
}

/** A separate port for the metrics, for an API that is served on a UNIX socket. */
function portOfSocket(settings: readonly Setting[]): readonly string[] {
  const api = settingOf(settings, 'api', 'host');
  const [host, port] = ['host', 'port'].map((name) => settingOf(settings, 'metrics', name));
  if (socketFileOf(String(api?.value)) === undefined || host?.value !== undefined) return [];
  if (port?.value === undefined || port.written === undefined) return [];
  const problem = 'needs [metrics] host as well, since [api] host is a UNIX socket';
  return [explain(port.option, port.written, problem, port.written.texts)];
}

/**
 * A section `[jwt:NAME]` has no options of libraries, and one that is misspelled, or of which a second value replaces the first, may let
 * tokens in that it was to refuse.
 */
const mistakesOfMembers = (files: readonly ConfigFile[]): readonly string[] =>
  files.flatMap(({ file, sections }) =>
    [...sections].flatMap(([section, values]) => {
      if (!isMemberSection(section)) return [];
      const { known, meant } = knownNames(section);
      return [...values].flatMap(([name, written]) => {
        const problem = known.has(name)
          ? 'is there already: write all values, separated by commas, in one line.'
          : `is no option of this section. It has ${meant.join(', ')}.`;
        return written
          .slice(known.has(name) ? 1 : 0)
          .map(({ line }) => `${file}:${line}: [${section}] ${name} ${problem}`);
      });
    }),
  );

function halfOfTls(settings: readonly Setting[]): readonly string[] {
  const [certificate, key] = ['cert_file', 'key_file'].map((name) => settingOf(settings, 'ssl', name));
  const alone = [certificate, key].filter((setting) => setting?.value !== undefined);
  const [only] = alone;
  if (alone.length !== 1 || only?.written === undefined) return [];
  const other = only === certificate ? 'key_file' : 'cert_file';
  return [explain(only.option, only.written, `needs [ssl] ${other} as well, which is not set`, only.written.texts)];
}

function defaultAboveNewest(settings: readonly Setting[]): readonly string[] {
  const [usual, newest] = ['default_version', 'max_microversion'].map((name) => settingOf(settings, 'api', name));
  if (usual?.written === undefined || newest === undefined) return [];
  const [usualText, newestText] = [String(usual.value), String(newest.value)];
  if (versionOfText(usualText) <= versionOfText(newestText)) return [];
  const problem = `must be at most [api] max_microversion, which is ${newestText}`;
  return [explain(usual.option, usual.written, problem, usual.written.texts)];
}

const databaseUrl = /^\s*(?:mysql|mariadb|sqlite|postgres(?:ql)?)(?:\+\w+)?:\/\//i;

/**
 * The options of the files that probably should name the database, but are not `[placement_database] connection`: a
 * misspelled option or section, or `[database] connection` as in the files of other services. Each is
 * `placement.conf:2: [placement_database] conection`, without its value, which may have a password.
 */
function findNearDatabase(files: readonly ConfigFile[]): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections].flatMap(([section, values]) =>
      [...values].flatMap(([name, written]) => {
        const last = written.at(-1);
        if (last === undefined || !isNear(section, name, last.value)) return [];
        return [`${file}:${last.line}: [${section}] ${name}`];
      }),
    ),
  );
}

/**
 * In a section of this service any database URL counts. In other sections the option must also be called `connection`
 * or nearly so.
 */
function isNear(section: string, name: string, value: string): boolean {
  const isNamed = nearName(name, ['connection']) !== undefined;
  const ours = groups.has(section) ? section : nearName(section, groups);
  if (ours === 'placement_database' && isNamed) return true;
  return databaseUrl.test(value) && (ours !== undefined || isNamed);
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One sentence for each setting that is probably a mistake, but no error.
 *
 * @param pluginGroup the section that `auth_section` names, which may have any name
 */
function findWarnings(
  files: readonly ConfigFile[],
  env: Environment,
  settings: readonly Setting[],
  pluginGroup: string,
): readonly string[] {
  return [
    ...misspelledSections(files, pluginGroup),
    ...misspelledOptions(files, pluginGroup),
    ...misspelledVariables(env, pluginGroup),
    ...missingPolicyFile(settings),
  ];
}

/**
 * Real files have sections of many libraries. So only a name that is almost the name of one of our sections is
 * reported; also that of an issuer without the colon and its name, whose tokens would all be refused.
 */
function misspelledSections(files: readonly ConfigFile[], pluginGroup: string): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections.keys()].flatMap((section) => {
      if (groups.has(section) || section === pluginGroup || isMemberSection(section)) return [];
      const isOfIssuer = nearName(/^[a-z]*/.exec(section)?.[0] ?? '', ['jwt']) !== undefined;
      const meant = nearName(section, groups) ?? (isOfIssuer ? 'jwt:NAME' : undefined);
      return meant === undefined
        ? []
        : [`${file}: section [${section}] has no option of this service and is ignored. Did you mean [${meant}]?`];
    }),
  );
}

/** Reports only names that are almost the name of an option in the same section: libraries have other options there. */
function misspelledOptions(files: readonly ConfigFile[], pluginGroup: string): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections].flatMap(([section, values]) => {
      if (isMemberSection(section)) return []; // an error
      const { known, meant } = knownNames(section === pluginGroup ? 'keystone_authtoken' : section);
      return [...values].flatMap(([name, written]) => {
        const near = known.has(name) ? undefined : nearName(name, meant);
        if (near === undefined) return [];
        return written.map(({ line }) => `${file}:${line}: [${section}] ${unknownOption(name, near)}`);
      });
    }),
  );
}

/** The variable of each option by what it is with one underscore behind the section, where it has no effect. */
const bySingleUnderscore = new Map(
  options.map((option) => [variableOf(option).replace('__', '_'), variableOf(option)]),
);

/** Only options of a service have such names, so that every unknown one is reported. */
function misspelledVariables(env: Environment, pluginGroup: string): readonly string[] {
  const ofPlugin = new Set(
    options.filter(({ plugin }) => plugin).map(({ name }) => variableOf({ group: pluginGroup, name })),
  );
  return Object.keys(env).flatMap((variable) => {
    const doubled = bySingleUnderscore.get(variable);
    if (doubled !== undefined) return [`environment: ${unknownOption(variable, doubled)}`];
    const [, prefix = '', section, option = ''] = /^(DEFAULT_)?OS_([A-Z0-9_]+?)__([A-Z0-9_]+)$/.exec(variable) ?? [];
    if (section === undefined || ofPlugin.has(variable.slice(prefix.length))) return [];
    const name = option.toLowerCase();
    const named = section === 'DEFAULT' ? section : section.toLowerCase();
    const group = groups.has(named) ? named : nearName(named, groups);
    if (group === undefined) return [`environment: ${unknownOption(variable)}`];
    const { known, meant } = knownNames(group);
    if (group === named && known.has(name)) return [];
    const near = known.has(name) ? name : nearName(name, meant);
    const nearVariable = near === undefined ? undefined : `${prefix}${variableOf({ group, name: near })}`;
    return [`environment: ${unknownOption(variable, nearVariable)}`];
  });
}

const unknownOption = (name: string, near?: string): string =>
  `${name} is no option of this service and is ignored.${near === undefined ? '' : ` Did you mean ${near}?`}`;

function missingPolicyFile(settings: readonly Setting[]): readonly string[] {
  const setting = settingOf(settings, 'oslo_policy', 'policy_file');
  if (!setting?.written?.texts.at(-1) || existsSync(String(setting.value))) return [];
  const problem = 'there is no such file, and a process that starts without it has the default rules';
  return [explain(setting.option, setting.written, problem, [String(setting.value)])];
}
