/** JSON in which every character that is not ASCII is escaped, as upstream escapes them. */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

let collator: Intl.Collator | undefined;

/**
 * The order of names: numbers in them count as numbers, so that host2 is before host10. The collator takes long to make, so the first
 * comparison makes it.
 */
export function compareNames(one: string, other: string): number {
  collator ??= new Intl.Collator('en', { numeric: true });
  return collator.compare(one, other);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of bytes in UTF-8. A byte order mark stays in it: JSON may not begin with one (RFC 8259, 8.1).
 *
 * @throws TypeError for other bytes
 */
export const decodeUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes);

/*
 * Python's str.strip(), by which upstream reads values. JavaScript's trim has another set of white space: without some
 * control characters, and with the byte order mark.
 */

const blank = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const leading = new RegExp(`^${blank}+`);
// Without the look-behind, the time for a long run of blanks inside a text would grow quadratically.
const trailing = new RegExp(`(?<!${blank})${blank}+$`);

/** Python's str.lstrip(). */
export const lstrip = (text: string): string => text.replace(leading, '');
/** Python's str.rstrip(). */
export const rstrip = (text: string): string => text.replace(trailing, '');
/** Python's str.strip(). */
export const strip = (text: string): string => lstrip(rstrip(text));

/**
 * Whether the database can store a text: PostgreSQL allows no NUL, and UTF-8 no lone surrogate. Any other text cannot
 * be in the database, so a search for it finds nothing.
 */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** A name without its numbers: `rack-1` and `rack-2` are of a series, and neither is a mistake for the other. */
export const unnumbered = (name: string): string => name.replaceAll(/\d+/g, '0');

/** How many wrong letters a name may have: one in names of up to 7 letters, two in longer names. */
const forgiven = (name: string): number => (name.length < 8 ? 1 : 2);

/** In a name of up to 3 letters a replaced letter makes a different word: `sql` is not a misspelled `ssl`. */
const costOfReplacing = (name: string): number => (name.length < 4 ? 2 : 1);

/**
 * Finds the known name that a misspelled name probably means: the nearest known name that differs in one or two
 * letters, or only in upper and lower case. The shortest names may have one letter too many or too few, or two swapped
 * letters.
 */
export const nearName = (written: string, known: Iterable<string>): string | undefined =>
  nearestNames(written, known)[0];

/** The known names that a misspelled name may mean, where several are equally near: `PGPU or VGPU` for `GPU`. */
export const nearNames = (written: string, known: Iterable<string>): string | undefined =>
  nearestNames(written, known).toSorted().slice(0, mostNear).join(' or ') || undefined;

const mostNear = 3;

function nearestNames(written: string, known: Iterable<string>): readonly string[] {
  // A text that is much longer or shorter is not near, and to compare it would take long.
  const comparable = [...known].filter((name) => Math.abs(written.length - name.length) <= forgiven(name));
  const distances = comparable.map((name) => ({
    name,
    distance: editDistance(written.toLowerCase(), name.toLowerCase(), costOfReplacing(name), forgiven(name)),
  }));
  const near = distances.filter(({ name, distance }) => distance <= forgiven(name));
  const least = near.reduce((before, { distance }) => Math.min(before, distance), Number.POSITIVE_INFINITY);
  return near.filter(({ distance }) => distance === least).map(({ name }) => name);
}

/**
 * How many letters must be added, removed, replaced or swapped with the next letter to turn one text into the other;
 * some larger number if they are more than `limit`.
 *
 * @param replacing the cost of one replaced letter
 */
function editDistance(from: string, to: string, replacing: number, limit: number): number {
  // rows[i][j] is the distance between the first i letters of `from` and the first j letters of `to`. If i and j differ
  // by more than the limit, the distance is larger, and is left out.
  const rows = [Array.from({ length: Math.min(to.length, limit) + 1 }, (_, length) => length)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= from.length; i += 1) {
    const row: number[] = [];
    rows.push(row);
    for (let j = Math.max(0, i - limit); j <= Math.min(to.length, i + limit); j += 1) {
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : replacing),
        swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
  }
  return at(from.length, to.length);
}

/** A number of things in words: `1 provider`, `2 providers`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** A time of the database as answers and the log show it; null where there is none, or an infinite one, which PostgreSQL has as well. */
export const timeText = (time: Date | null): string | null =>
  time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();
