/** Every microversion that this client knows, oldest first. OpenStack's end at 1.39. */
export const microversions = [
  ...(['1.0', '1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8', '1.9'] as const),
  ...(['1.10', '1.11', '1.12', '1.13', '1.14', '1.15', '1.16', '1.17', '1.18', '1.19'] as const),
  ...(['1.20', '1.21', '1.22', '1.23', '1.24', '1.25', '1.26', '1.27', '1.28', '1.29'] as const),
  ...(['1.30', '1.31', '1.32', '1.33', '1.34', '1.35', '1.36', '1.37', '1.38', '1.39'] as const),
  '1.40',
  '1.41',
  '1.42',
  '1.43',
  '1.44',
  '1.45',
] as const;

/** Such as `1.0`. */
export type Microversion = (typeof microversions)[number];

/** The newest minor version that this client knows. */
export const newestMinor = microversions.length - 1;

/** A microversion and all newer ones: `From<'1.38'>` is `'1.38' | '1.39' | '1.40'` and so on. */
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
 * client leaves out those that the negotiated version does not have.
 */
export type AskedSince<Version extends Microversion, First extends Microversion, Fields> = [
  Extract<Version, From<First>>,
] extends [never]
  ? { readonly [Name in keyof Fields]?: never }
  : Fields;
