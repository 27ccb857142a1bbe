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

const groups: Readonly<Record<string, Readonly<Record<string, OptionSpec<unknown>>>>> = optionSpecs;
const defaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = defaultConfig;

/** All options in the order of `--show-config`, with the defaults of `defaultConfig`. */
export const options: readonly Option[] = Object.entries(groups).flatMap(([groupKey, group]) =>
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
  ...['connection_parameters', 'mysql_sql_mode', 'max_overflow'].map((name) => ['placement_database', name] as const),
  ...['auth_section', 'auth_version', 'memcached_servers'].map((name) => ['keystone_authtoken', name] as const),
];
