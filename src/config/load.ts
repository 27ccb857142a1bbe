import type { Config } from './config.ts';
import { ConfigError } from './config_error.ts';
import { deepFreeze } from './deep_freeze.ts';
import { explain } from './explain.ts';
import { type Option, options } from './options.ts';
import { type Found, findConfig, locate, type Surroundings } from './search.ts';
import { type Override, openSources, type Sources, type Written } from './sources.ts';
import { substitute } from './substitution.ts';
import { findWarnings } from './warnings.ts';

/** An option with the value that holds, for people. */
export type Setting = {
  readonly option: Option;
  /** As in `Config`. */
  readonly value: unknown;
  /** undefined for the default. */
  readonly written: Written | undefined;
  /** Whether the value must not be shown: the option is secret, or its value refers to one that is. */
  readonly secret: boolean;
};

/** The configuration, with where it comes from. */
export type LoadedConfig = {
  readonly config: Config;
  /** Every option, in the order of the table. */
  readonly settings: readonly Setting[];
  /** The files that were read, in order; the later one wins. */
  readonly files: readonly string[];
  /** What is probably a mistake and yet no error, a sentence each. */
  readonly warnings: readonly string[];
};

/**
 * Finds, reads and validates the configuration. Precedence: overrides (the command line), the environment
 * (`OS_<GROUP>__<OPTION>`), files (the later one first), DATABASE_URL for `[placement_database] connection`, `defaultConfig`.
 *
 * @throws ConfigError with a line for every mistake: where it is, section, option, value, and what is allowed. What does
 * not parse is told first, alone.
 */
export function load(input: Surroundings & { readonly overrides?: readonly Override[] }): LoadedConfig {
  const found = findConfig(input);
  const sources = openSources(found.files, input.env, input.overrides ?? []);
  const { settings, problems } = settleAll(sources, found);
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    config: deepFreeze(assemble(settings)),
    settings,
    files: found.files.map(({ file }) => file),
    warnings: findWarnings(found.files, settings, sources.pluginGroup),
  };
}

/** Gives each option its value; those that a value refers to are settled first. */
function settleAll(sources: Sources, found: Found): { settings: readonly Setting[]; problems: readonly string[] } {
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
    const texts = written.literal ? written.texts : written.texts.map((text) => substitute(text, lookup));
    const reading = loop
      ? { problem: 'must not refer to itself; write $$ for a dollar sign' }
      : option.type.read(texts);
    if ('problem' in reading) problems.add(explain(option, written, reading.problem, secret ? written.texts : texts));
    const value = 'problem' in reading ? option.default : (reading.value ?? option.default);
    return { option, value: beside(option, value), written, secret };
  }

  function beside(option: Option, value: unknown): unknown {
    if (!option.beside) return value;
    if (Array.isArray(value)) return value.map((name) => locate([String(name)], found));
    const file = String(value);
    // Where nothing else is said, upstream still reads the policy file of old: JSON, which is YAML, too.
    return locate(value === option.default ? [file, file.replace(/\.yaml$/, '.json')] : [file], found);
  }

  const settings = options.map(settle);
  for (const problem of contradictions(settings)) problems.add(problem);
  return { settings, problems: [...problems] };
}

/** What `str` makes of a value in Python, since that is what a reference to an option becomes. */
function asPythonText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return Array.isArray(value) ? value.join(',') : String(value);
}

function contradictions(settings: readonly Setting[]): readonly string[] {
  const [certificate, key] = ['cert_file', 'key_file'].map((name) =>
    settings.find(({ option }) => option.group === 'ssl' && option.name === name),
  );
  const alone = [certificate, key].filter((setting) => setting?.value !== undefined);
  const [only] = alone;
  if (alone.length !== 1 || only?.written === undefined) return [];
  const other = only === certificate ? 'key_file' : 'cert_file';
  return [explain(only.option, only.written, `needs [ssl] ${other} beside it, which is not set`, only.written.texts)];
}

function assemble(settings: readonly Setting[]): Config {
  const groups: Record<string, Record<string, unknown>> = {};
  for (const { option, value } of settings) {
    groups[option.groupKey] ??= {};
    Object.assign(groups[option.groupKey] ?? {}, { [option.key]: value });
  }
  // The table of options has exactly the keys of Config, each with a type that reads this key's type.
  return groups as unknown as Config;
}
