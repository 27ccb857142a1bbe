/** A thing with a UUID, and the name by which people know it. */
export type Named = { readonly uuid: string; readonly name: string };

/** The things with this name or UUID, or else the things whose name contains the text. */
export function named<T extends Named>(text: string, all: Iterable<T>): readonly T[] {
  const wanted = text.toLowerCase();
  if (wanted === '') return [];
  const exact: T[] = [];
  const parts: T[] = [];
  for (const each of all) {
    const name = each.name.toLowerCase();
    if (name === wanted || each.uuid === wanted) exact.push(each);
    else if (name.includes(wanted)) parts.push(each);
  }
  return exact.length > 0 ? exact : parts;
}

/** The beginning of a condition on aggregates, such as `!in:`, and its names or UUIDs. */
const split = (word: string): readonly [string, readonly string[]] => {
  const [, start = '', rest = ''] = /^(!?(?:in:)?)(.*)$/s.exec(word) ?? [];
  return [start, rest.split(',')];
};

/** A condition on aggregates with UUIDs where a user wrote names. The name of no aggregate, or of several, stays. */
export function withUuids(word: string, all: readonly Named[]): string {
  const [start, parts] = split(word);
  const uuidOf = (part: string) => {
    const [found, ...others] = named(part.trim(), all);
    return found === undefined || others.length > 0 ? part : found.uuid;
  };
  return start + parts.map(uuidOf).join();
}

/** A condition on aggregates with their names instead of their UUIDs, for people. */
export function withNames(word: string, all: readonly Named[]): string {
  const names = new Map(all.map(({ uuid, name }) => [uuid, name]));
  const [start, parts] = split(word);
  return start + parts.map((part) => names.get(part) ?? part).join();
}
