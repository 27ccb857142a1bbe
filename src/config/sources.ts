import { ignoredOptions, memberOptions, type Option, options, variableOf } from './config.ts';
import { maskUrls } from './database_url.ts';
import { normalizeSection } from './oslo_ini.ts';
import type { ConfigFile } from './search.ts';

/** A value from the command line: `{ group: 'api', name: 'port', text: '8778', flag: '--port' }`. */
export type Override = {
  /** The section, as it is written in files. */
  readonly group: string;
  readonly name: string;
  readonly text: string;
  /** For messages. */
  readonly flag: string;
};

/** Where a value is written. */
export type Source =
  | { readonly from: 'command line'; readonly flag: string }
  | { readonly from: 'environment'; readonly variable: string }
  /** Section and name as written in the file. They may be the older names. */
  | {
      readonly from: 'file';
      readonly file: string;
      readonly line: number;
      readonly group: string;
      readonly name: string;
    };

/** The texts of an option, from the source that wins. */
export type Written = {
  /** At least one; exactly one unless the option takes several. */
  readonly texts: readonly string[];
  readonly source: Source;
  /** Whether `$` has no special meaning in the texts. */
  readonly literal: boolean;
};

/** All sources of values, combined. */
export type Sources = {
  /** The options of every service, and for each section `[jwt:NAME]` of the files the options of this section. */
  readonly options: readonly Option[];
  readonly find: (option: Option) => Written | undefined;
  /** What `$name` or `$group.name` in the value of an option refers to; undefined if there is no such name. */
  readonly named: (name: string, from: Option) => { readonly option: Option } | { readonly text: string } | undefined;
  /** The section of the options of Keystone's authentication plugin. */
  readonly pluginGroup: string;
};

/** The whole name of a setting. */
type SettingName = readonly [group: string, name: string];

/** The prefix of variables that set another default of an option. */
const defaultPrefix = 'DEFAULT_';

const key = (group: string, name: string): string => `${group}.${name}`;
const ignored = new Set(ignoredOptions.map(([group, name]) => key(group, name)));

/**
 * All sources of values, the command line first. An empty variable counts as set, except DATABASE_URL. An image or a package
 * sets variables DEFAULT_OS_...: any file wins over them.
 */
export function openSources(
  files: readonly ConfigFile[],
  env: Readonly<Record<string, string | undefined>>,
  overrides: readonly Override[],
): Sources {
  const authSection = fromEnvironment('keystone_authtoken', 'auth_section') ??
    fromFiles([['keystone_authtoken', 'auth_section']], false) ?? { texts: ['keystone_authtoken'] };
  const all = [...options, ...memberOptions(files.flatMap(({ sections }) => [...sections.keys()]))];
  const known = new Map(all.map((option) => [key(option.group, option.name), option]));
  const pluginGroup = normalizeSection(authSection.texts[0] || 'keystone_authtoken');

  function fromCommandLine(option: Option): Written | undefined {
    const override = overrides.findLast(({ group, name }) => group === option.group && name === option.name);
    if (override === undefined) return undefined;
    return { texts: [override.text], source: { from: 'command line', flag: override.flag }, literal: false };
  }

  function fromEnvironment(group: string, name: string, prefix = ''): Written | undefined {
    const variable = `${prefix}${variableOf({ group, name })}`;
    const text = env[variable];
    return text === undefined
      ? undefined
      : { texts: [text], source: { from: 'environment', variable }, literal: false };
  }

  /** The last file that has one of the names decides. In that file the first of the names counts. */
  function fromFiles(names: readonly SettingName[], multi: boolean): Written | undefined {
    const found = files.toReversed().flatMap(({ file, sections }) =>
      names.flatMap(([group, name]) => {
        const values = sections.get(group)?.get(name) ?? [];
        const last = values.at(-1);
        if (last === undefined) return [];
        const source: Source = { from: 'file', file, line: last.line, group, name };
        return [{ texts: values.map(({ value }) => value), source }];
      }),
    );
    const [winner] = found;
    if (winner === undefined) return undefined;
    const texts = multi ? found.toReversed().flatMap((each) => each.texts) : winner.texts.slice(-1);
    return { texts, source: winner.source, literal: false };
  }

  function find(option: Option): Written | undefined {
    const group = option.plugin ? pluginGroup : option.group;
    const former = (option.formerly ?? []).map(
      ([section, name]): SettingName => [section === option.group ? group : section, name],
    );
    return (
      fromCommandLine(option) ??
      fromEnvironment(group, option.name) ??
      fromFiles([[group, option.name], ...former], option.type.multi) ??
      fromDatabaseUrl(option) ??
      fromEnvironment(group, option.name, defaultPrefix)
    );
  }

  function fromDatabaseUrl(option: Option): Written | undefined {
    const text = env.DATABASE_URL;
    if (!text || key(option.group, option.name) !== 'placement_database.connection') return undefined;
    return { texts: [text], source: { from: 'environment', variable: 'DATABASE_URL' }, literal: true };
  }

  function named(name: string, from: Option): { option: Option } | { text: string } | undefined {
    const dot = name.indexOf('.');
    const names: readonly SettingName[] =
      dot === -1
        ? [
            [from.group, name],
            ['DEFAULT', name],
          ]
        : [[name.slice(0, dot), name.slice(dot + 1)]];
    for (const [group, optionName] of names) {
      const option = known.get(key(group, optionName));
      if (option !== undefined) return { option };
      if (!ignored.has(key(group, optionName))) continue;
      const text = (fromEnvironment(group, optionName) ?? fromFiles([[group, optionName]], false))?.texts[0];
      return text === undefined ? undefined : { text };
    }
    return undefined;
  }

  return { options: all, find, named, pluginGroup };
}

/** The source of a value, as messages show it: `/etc/placement/placement.conf:12`. */
export function sourceName(source: Source): string {
  if (source.from === 'file') return `${source.file}:${source.line}`;
  return source.from === 'environment' ? source.variable : source.flag;
}

/**
 * One line about a mistake: `/etc/placement/placement.conf:12: [api] auth_strategy = "none": must be one of ...`. The
 * value of a secret option is hidden, except for the scheme of a database URL.
 *
 * @param resolved the texts after substitution, if they may be shown
 */
export function explain(
  option: Option,
  { texts, source }: Written,
  problem: string,
  resolved: readonly string[],
): string {
  const { group, name } = source.from === 'file' ? source : option;
  const [shown, meant] = [texts, resolved].map((values) => (option.secret ? redact(values) : quote(values)));
  const value = shown === meant ? shown : `${shown} (which is ${meant})`;
  return `${sourceName(source)}: [${group}] ${name} = ${value}: ${problem}.`;
}

const longest = 100;

function quote(texts: readonly string[]): string {
  const text = maskUrls(texts.join(', '));
  return JSON.stringify(text.length > longest ? `${text.slice(0, longest)}...` : text);
}

function redact([text = '']: readonly string[]): string {
  if (text === '') return '""';
  const scheme = /^(?:mysql|mariadb|sqlite|postgres(?:ql)?)(?:\+\w+)?:\/\//.exec(text)?.[0] ?? '';
  return `${scheme}***`;
}
