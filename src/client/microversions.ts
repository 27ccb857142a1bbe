/**
 * Every microversion that this client knows, oldest first. OpenStack's versions end at 1.39. Version 2 belongs to this service; 2.0 is the
 * same as 1.39.
 */
export const microversions = [
  ...(['1.0', '1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8', '1.9'] as const),
  ...(['1.10', '1.11', '1.12', '1.13', '1.14', '1.15', '1.16', '1.17', '1.18', '1.19'] as const),
  ...(['1.20', '1.21', '1.22', '1.23', '1.24', '1.25', '1.26', '1.27', '1.28', '1.29'] as const),
  ...(['1.30', '1.31', '1.32', '1.33', '1.34', '1.35', '1.36', '1.37', '1.38', '1.39'] as const),
  '2.0',
  '2.1',
  '2.2',
  '2.3',
  '2.4',
  '2.5',
  '2.6',
  '2.7',
  '2.8',
  '2.9',
] as const;

/** Such as `1.0`. */
export type Microversion = (typeof microversions)[number];

/** A version that this client knows as one number, so that versions are compared; see `numberOfVersion`. */
export const versionNumber = (version: Microversion): number => numberOfVersion(version);

/**
 * A version as one number: 1000 times the major version and the minor version. It may be one that this client does not know.
 *
 * @param text such as `2.6`
 */
export function numberOfVersion(text: string): number {
  const [major, minor] = text.split('.').map(Number);
  return (major ?? Number.NaN) * 1000 + (minor ?? Number.NaN);
}

/** A version in its usual form, from its number: `2.6` from 2006. */
export const versionText = (version: number): string => `${majorOf(version)}.${version % 1000}`;

/** The major version of a version. */
export const majorOf = (version: number): number => Math.floor(version / 1000);

/** The oldest and the newest version that this client knows, and the newest of OpenStack's. */
export const oldestKnown = versionNumber(microversions[0]);
export const newestKnown = versionNumber(microversions.at(-1) ?? microversions[0]);
export const newestOfOpenstack = versionNumber('1.39');

/** A microversion and all newer ones: `From<'1.38'>` is `'1.38' | '1.39' | '2.0'` and so on. */
export type From<First extends Microversion> = FromIn<First, typeof microversions>;
type FromIn<First, List extends readonly unknown[]> = List extends readonly [infer Head, ...infer Tail]
  ? Head extends First
    ? Head | Tail[number]
    : FromIn<First, Tail>
  : never;

/**
 * Fields that an answer has from a microversion on. `Version` is the set of versions that the client may use. If all of
 * them have the fields, the fields are in the type; if none has them, they are not; otherwise they are optional.
 */
export type Since<Version extends Microversion, First extends Microversion, Fields> = [Version] extends [From<First>]
  ? Fields
  : [Extract<Version, From<First>>] extends [never]
    ? unknown
    : Partial<Fields>;

/**
 * Fields that a request has from a microversion on. If the version will be negotiated, the fields are required, and the
 * client leaves out fields that the negotiated version does not have.
 */
export type RequestSince<Version extends Microversion, First extends Microversion, Fields> = [
  Extract<Version, From<First>>,
] extends [never]
  ? { readonly [Name in keyof Fields]?: never }
  : Fields;
