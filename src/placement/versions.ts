/**
 * A version as one number, so that versions are compared: 1000 times the major version and the minor version. `1.39` is
 * 1039, `2.6` is 2006.
 */
export type Version = number;

const majorStep = 1000;

/** The number of a version. */
export const versionOf = (major: number, minor: number): Version => major * majorStep + minor;

/** A version as headers have it, `1.39`. */
export const versionText = (version: Version): string => `${majorOf(version)}.${version % majorStep}`;

/** The number of a version that is written as `1.39`. */
export function versionOfText(text: string): Version {
  const [major = Number.NaN, minor = Number.NaN] = text.split('.').map(Number);
  return versionOf(major, minor);
}

/** The versions of one major version, from the oldest to the newest. There is one for each minor version between them. */
export type VersionRange = { readonly oldest: Version; readonly newest: Version };

/**
 * A service with microversions, such as `placement 1.0` to `placement 1.39`. One server may have several services:
 * their versions share one header, separated by commas.
 */
export type Service = {
  /** The service type of the header, as in the Keystone catalog. */
  readonly type: string;
  /** The versions that are offered, a range for each major version. The first range is OpenStack's, and `latest` ends it. */
  readonly ranges: readonly [VersionRange, ...VersionRange[]];
  /** The version of a request that names none. */
  readonly defaultVersion: Version;
};

/** OpenStack's versions of a service. Clients that do not request another major version see only these. */
export const openstackRange = ({ ranges: [first] }: Service): VersionRange => first;

/**
 * Whether a version is this service's own, which refuses some of what OpenStack's versions ignore. The oldest of them is the same as
 * OpenStack's newest, and so does not count.
 */
export const isOwn = ({ ranges: [, own] }: Service, version: Version): boolean =>
  own !== undefined && version > own.oldest;

/** The newest version of a service, of any major version. */
export const newestOf = ({ ranges }: Service): Version => (ranges.at(-1) ?? ranges[0]).newest;

/** The range of a major version; undefined if the service has none. */
export const rangeOf = ({ ranges }: Service, major: number): VersionRange | undefined =>
  ranges.find(({ oldest }) => majorOf(oldest) === major);

/** The major version of a version. */
export const majorOf = (version: Version): number => Math.floor(version / majorStep);

/** Whether a version is in a range of its major version. */
export const offers = ({ oldest, newest }: VersionRange, major: number, minor: number): boolean =>
  minor < majorStep && oldest <= versionOf(major, minor) && versionOf(major, minor) <= newest;

/** All versions of a service, from the oldest to the newest. */
export const versionTexts = ({ ranges }: Service): readonly string[] =>
  ranges.flatMap(({ oldest, newest }) =>
    Array.from({ length: newest - oldest + 1 }, (_, index) => versionText(oldest + index)),
  );

/** The same service, which offers and understands nothing above a version such as `1.30`. */
export function upTo(service: Service, newest: Version): Service {
  const [first, ...further] = service.ranges.filter(({ oldest }) => oldest <= newest);
  if (first === undefined) throw new Error(`${service.type} has no version up to ${versionText(newest)}.`);
  const cut = (range: VersionRange): VersionRange => ({ ...range, newest: Math.min(range.newest, newest) });
  return { ...service, ranges: [cut(first), ...further.map(cut)] };
}

/**
 * The changes of the versions of a service. The key is the name by which code asks for the version; the value is the
 * version, a sentence for people, and what a client of the version before must change, if it must.
 */
export type VersionChanges = Readonly<Record<string, readonly [version: string, text: string, breaks?: string]>>;

/** The version that introduced each change, by the name of the change. */
export const sinceOf = <const Named extends VersionChanges>(
  changes: Named,
): { readonly [Name in keyof Named]: Version } =>
  // The object has a number for each name of the type.
  Object.fromEntries(Object.entries(changes).map(([name, [text]]) => [name, versionOfText(text)])) as {
    readonly [Name in keyof Named]: Version;
  };

/** The newest version that introduced a change, within a major version. */
export const newestSince = (since: Readonly<Record<string, Version>>, major: number): Version =>
  Math.max(...Object.values(since).filter((version) => majorOf(version) === major));

/** A schema and the version that introduced it; lists of schemas have the newest first. */
export type Since<Schema> = { readonly since: Version; readonly schema: Schema };

/** The schema that holds at a version. */
export function bySince<const Schemas extends readonly Since<unknown>[]>(
  schemas: Schemas,
  version: Version,
): Schemas[number]['schema'] {
  const found = schemas.find(({ since }) => since <= version);
  if (found === undefined)
    throw new Error(`There is no schema for version ${versionText(version)}: the endpoint should not exist there.`);
  return found.schema;
}
