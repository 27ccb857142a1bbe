import { isDeepStrictEqual } from 'node:util';
import { jwtTable, optionTable } from './option_table.ts';
import type { OptionSpec } from './option_type.ts';

type ConfigOf<Table> = {
  readonly [Group in keyof Table]: {
    readonly [Key in keyof Table[Group]]: Table[Group][Key] extends OptionSpec<infer Value> ? Value : never;
  };
};

/** The values of a section `[jwt:NAME]`. */
export type JwtConfig = ConfigOf<{ readonly jwt: typeof jwtTable }>['jwt'];

/** Every option that the service reads, typed and validated. `./load.ts` reads the values from their sources. */
export type Config = ConfigOf<typeof optionTable> & {
  /** The sections `[jwt:NAME]`, by NAME in small letters. */
  readonly jwt: Readonly<Record<string, JwtConfig>>;
};

/** One option: its name in a file, and where it is in `Config`. */
export type Option = OptionSpec<unknown> & {
  /** The section, `placement_database`. */
  readonly group: string;
  readonly name: string;
  /** `Config[groupKey][key]`, or `Config[groupKey][member][key]` */
  readonly groupKey: string;
  /** The NAME of a section such as `[jwt:NAME]`. */
  readonly member?: string;
  readonly key: string;
};

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** All options in the order of `--show-config`. */
export const options: readonly Option[] = Object.entries(optionTable).flatMap(([groupKey, specs]) =>
  Object.entries<OptionSpec<unknown>>(specs).map(([key, spec]) => ({
    ...spec,
    group: groupKey === 'default' ? 'DEFAULT' : snakeCase(groupKey),
    name: snakeCase(key),
    groupKey,
    key,
  })),
);

const jwtSection = /^jwt:(.+)$/;

/** Whether a section is `[jwt:NAME]`, of which a file may have several. */
export const isMemberSection = (section: string): boolean => jwtSection.test(section);

/** The options of the sections `[jwt:NAME]` among these sections. */
export const memberOptions = (sections: Iterable<string>): readonly Option[] =>
  [...new Set(sections)].flatMap((group) => {
    const member = jwtSection.exec(group)?.[1];
    if (member === undefined) return [];
    return Object.entries<OptionSpec<unknown>>(jwtTable).map(([key, spec]) => ({
      ...spec,
      group,
      name: snakeCase(key),
      groupKey: 'jwt',
      member,
      key,
    }));
  });

/** The options of both configurations, or of one of them, whose values differ. */
export function changedOptions(before: Config, after: Config): readonly Option[] {
  const sections = [before, after].flatMap(({ jwt }) => Object.keys(jwt).map((member) => `jwt:${member}`));
  return [...options, ...memberOptions(sections)].filter(
    (option) => !isDeepStrictEqual(optionValue(before, option), optionValue(after, option)),
  );
}

/** The value of an option; undefined if the configuration has no such section. */
function optionValue(config: Config, { groupKey, member, key }: Option): unknown {
  const group: unknown = Reflect.get(config, groupKey);
  const holder: unknown = member === undefined ? group : isObject(group) ? Reflect.get(group, member) : undefined;
  return isObject(holder) ? Reflect.get(holder, key) : undefined;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** The environment variable that sets an option: `OS_API__PORT`. */
export const variableOf = ({ group, name }: Pick<Option, 'group' | 'name'>): string =>
  `OS_${group}__${name}`.toUpperCase();

/** The configuration in which every option has its value. It is frozen, with everything in it. */
export function configOf(values: readonly { readonly option: Option; readonly value: unknown }[]): Config {
  const groups: Record<string, Record<string, unknown>> = {};
  // Without a prototype `[jwt:__proto__]` is a section as any other.
  const members: Record<string, Record<string, unknown>> = Object.create(null);
  for (const { option, value } of values) {
    const [within, name] = option.member === undefined ? [groups, option.groupKey] : [members, option.member];
    within[name] = { ...within[name], [option.key]: value };
  }
  groups.jwt = members;
  // `optionTable` and `jwtTable` have exactly the keys of Config, and the type of each option reads the type of that key.
  return deepFreeze(groups) as unknown as Config;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}

/** The values of options that are not configured. */
export const defaultConfig: Config = configOf(options.map((option) => ({ option, value: option.default })));

/**
 * Options of upstream that have no effect in this service, but that the values of other options may refer to
 * (`$state_path/policy.yaml`). Other unknown options are ignored, too, and a `$name` that refers to them stays as
 * written.
 */
export const ignoredOptions: readonly (readonly [group: string, name: string])[] = [
  ...['tempdir', 'pybasedir', 'state_path', 'log_options'].map((name) => ['DEFAULT', name] as const),
  ...['mysql_sql_mode', 'max_overflow', 'min_pool_size'].map((name) => ['placement_database', name] as const),
  ...['auth_section', 'auth_version', 'memcached_servers'].map((name) => ['keystone_authtoken', name] as const),
];

/** The sections that have options of this service. */
export const groups: ReadonlySet<string> = new Set(options.map(({ group }) => group));

/** The names of the options of a section: `meant` are the options of this service, `known` also has options without effect. */
export type OptionNames = { readonly known: ReadonlySet<string>; readonly meant: readonly string[] };

/** The names of a section; none if it has no option of this service. */
export function knownNames(group: string): OptionNames {
  const meant = [...options, ...memberOptions([group])]
    .filter((option) => option.group === group)
    .map(({ name }) => name);
  const former = options.flatMap(({ formerly = [] }) => formerly).filter(([section]) => section === group);
  const ignored = ignoredOptions.filter(([section]) => section === group);
  return { known: new Set([...meant, ...[...former, ...ignored].map(([, name]) => name)]), meant };
}

/**
 * The mistakes in the configuration, for the operator, one line for each. A command prints the message and ends. It
 * prints no stack, because that does not help the operator. A line never shows the value of a secret option.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
