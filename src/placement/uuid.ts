/** Without the look-behind a long run of braces in the middle of a text would take quadratic time. */
const lastBraces = /(?<![{}])[{}]+$/;

const uuidDigits = (value: string): string =>
  value
    .replaceAll('urn:', '')
    .replaceAll('uuid:', '')
    .replace(/^[{}]+/, '')
    .replace(lastBraces, '')
    .replaceAll('-', '')
    .toLowerCase();

/**
 * Whether a text is a UUID in a spelling that Python's uuid module accepts: dashes anywhere or nowhere, braces,
 * `urn:uuid:`, any case.
 */
export const isUuidLike = (value: string): boolean => usual.test(value) || /^[0-9a-f]{32}$/.test(uuidDigits(value));

/** The usual spelling of a text that isUuidLike accepts: lower case, with dashes. */
export const normalUuid = (value: string): string => (usual.test(value) ? value : normalized(value));

/** A text that may be a UUID, and its usual spelling if that is another: what is stored may have either. */
export const spellingsOf = (sent: string): readonly string[] =>
  usual.test(sent) || !isUuidLike(sent) ? [sent] : [...new Set([sent, normalized(sent)])];

/** Whether two texts are equal, or spellings of one UUID. */
export const isSameUuid = (one: string, other: string): boolean =>
  one === other || normalUuid(one) === normalUuid(other);

/** Nearly all have it: to test it takes a tenth of the time of making it. */
const usual = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const normalized = (value: string): string =>
  uuidDigits(value).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** A consumer in a text for people: its UUID, and the name that it has. */
export const withName = (uuid: string, name: string | null | undefined): string =>
  name == null ? uuid : `${uuid} (${name})`;
