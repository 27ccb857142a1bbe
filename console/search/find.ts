import { compareNames } from '../../src/text/strings.ts';
import { uuidOf } from '../uuid.ts';

/** A thing that a search may find, by its name or its UUID. */
export type Findable = {
  readonly uuid: string;
  readonly name: string;
  /** Whether it is below another one: such things come after roots. */
  readonly parent_provider_uuid?: string | null;
};

/** Whether a search finds something by a part of its name or UUID, and how well: 0 is best. */
function rankOf({ uuid, name }: Findable, wanted: string): number | undefined {
  const lower = name.toLowerCase();
  if (lower === wanted || uuid === wanted) return 0;
  if (lower.startsWith(wanted)) return 1;
  if (uuid.startsWith(wanted)) return 2;
  if (lower.includes(wanted)) return 3;
  return uuid.includes(wanted) ? 4 : undefined;
}

const below = ({ parent_provider_uuid: parent = null }: Findable): number => Number(parent !== null);

/** Finds things by a text in their name or UUID: exact matches first, then matches at the beginning, and roots before children. */
export function findAll<T extends Findable>(all: Iterable<T>, text: string): readonly T[] {
  const wanted = uuidOf(text.trim()) ?? text.trim().toLowerCase();
  if (wanted === '') return [];
  const found: { readonly each: T; readonly rank: number }[] = [];
  for (const each of all) {
    const rank = rankOf(each, wanted);
    if (rank !== undefined) found.push({ each, rank });
  }
  return found
    .sort((a, b) => a.rank - b.rank || below(a.each) - below(b.each) || compareNames(a.each.name, b.each.name))
    .map(({ each }) => each);
}

/** The UUID before the first one that begins with a text; undefined if none does. Lists continue behind it. */
export function uuidBefore(start: string): string | undefined {
  if (!/^[0-9a-f-]{1,36}$/i.test(start)) return undefined;
  const digits = start.replaceAll('-', '').toLowerCase();
  if (digits === '' || digits.length > 32) return undefined;
  const first = BigInt(`0x${digits.padEnd(32, '0')}`);
  const before = (first === 0n ? 0n : first - 1n).toString(16).padStart(32, '0');
  return before.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
