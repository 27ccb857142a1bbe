/**
 * A service with microversions, such as `placement 1.0` to `placement 1.39`. One server may have several services:
 * their versions share one header, separated by commas.
 */
export type Service = {
  /** The service type of the header, as in the Keystone catalog. */
  readonly type: string;
  readonly major: number;
  readonly minMinor: number;
  readonly maxMinor: number;
};

/** A version as headers have it, `1.39`. */
export const versionText = (service: Service, minor: number): string => `${service.major}.${minor}`;

/** All versions of a service, from the oldest to the newest. */
export const versionTexts = (service: Service): readonly string[] =>
  Array.from({ length: service.maxMinor - service.minMinor + 1 }, (_, index) =>
    versionText(service, service.minMinor + index),
  );

/** The same service, which offers and understands nothing above a version such as `1.30`. */
export const upTo = (service: Service, version: string): Service => ({
  ...service,
  maxMinor: Math.min(service.maxMinor, Number(version.slice(version.indexOf('.') + 1))),
});

/**
 * What the minor versions of a service brought. The key is the name by which code asks for the version; the value is
 * the minor version and a sentence for people.
 */
export type VersionChanges = Readonly<Record<string, readonly [minor: number, text: string]>>;

/** The minor version that brought each change, by the name of the change. */
export const sinceOf = <const Named extends VersionChanges>(
  changes: Named,
): { readonly [Name in keyof Named]: Named[Name][0] } =>
  // The object has the number of every name, as the type says.
  Object.fromEntries(Object.entries(changes).map(([name, [minor]]) => [name, minor])) as {
    readonly [Name in keyof Named]: Named[Name][0];
  };

/** The newest of some minor versions. */
export const newestOf = (since: Readonly<Record<string, number>>): number => Math.max(...Object.values(since));

/** A schema and the minor version that brought it; lists of them have the newest first. */
export type Since<Schema> = { readonly since: number; readonly schema: Schema };

/** The schema that holds at a version. */
export function bySince<const Schemas extends readonly Since<unknown>[]>(
  schemas: Schemas,
  version: number,
): Schemas[number]['schema'] {
  const found = schemas.find(({ since }) => since <= version);
  if (found === undefined)
    throw new Error(`There is no schema for minor version ${version}: the endpoint should not exist there.`);
  return found.schema;
}
