import { defaultConfig } from './default_config.ts';
import { type OptionSpec, optionSpecs } from './option_specs.ts';

/** One option: its name in a file, and its place in `Config`. */
export type Option = OptionSpec<unknown> & {
  /** The section, `placement_database`. */
  readonly group: string;
  readonly name: string;
  /** `Config[groupKey][key]` */
  readonly groupKey: string;
  readonly key: string;
  readonly default: unknown;
};

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const specs: Readonly<Record<string, Readonly<Record<string, OptionSpec<unknown>>>>> = optionSpecs;
const defaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = defaultConfig;

/** All options in the order of `--show-config`, with the defaults of `defaultConfig`. */
export const options: readonly Option[] = Object.entries(specs).flatMap(([groupKey, group]) =>
  Object.entries(group).map(([key, spec]) => ({
    ...spec,
    group: groupKey === 'default' ? 'DEFAULT' : snakeCase(groupKey),
    name: snakeCase(key),
    groupKey,
    key,
    default: defaults[groupKey]?.[key],
  })),
);

/**
 * Options of upstream that have no effect here, but that the values of other options may refer to
 * (`$state_path/policy.yaml`). Other unknown options are ignored, too, and a `$name` that refers to them stays as
 * written.
 */
export const ignoredOptions: readonly (readonly [group: string, name: string])[] = [
  ...['tempdir', 'pybasedir', 'state_path', 'log_options'].map((name) => ['DEFAULT', name] as const),
  ...['connection_parameters', 'mysql_sql_mode', 'max_overflow', 'min_pool_size'].map(
    (name) => ['placement_database', name] as const,
  ),
  ...['auth_section', 'auth_version', 'memcached_servers'].map((name) => ['keystone_authtoken', name] as const),
];

/** The sections that have options of this service. */
export const groups: ReadonlySet<string> = new Set(options.map(({ group }) => group));

/** The names of the options of a section: `meant` are those of this service, `known` has also those without effect. */
export type KnownNames = { readonly known: ReadonlySet<string>; readonly meant: readonly string[] };

/** The names of a section; none if it has no option of this service. */
export function knownNames(group: string): KnownNames {
  const meant = options.filter((option) => option.group === group).map(({ name }) => name);
  const former = options.flatMap(({ formerly = [] }) => formerly).filter(([section]) => section === group);
  const ignored = ignoredOptions.filter(([section]) => section === group);
  return { known: new Set([...meant, ...[...former, ...ignored].map(([, name]) => name)]), meant };
}
