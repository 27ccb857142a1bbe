const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at));

/** Characters that must not reach a terminal or a log as they are: C0 without the line feed, delete, C1, and what turns text around. */
export const harmful: readonly string[] = [
  ...range(0x00, 0x1f).filter((character) => character !== '\n'),
  ...range(0x7f, 0x9f),
  ...range(0x202a, 0x202e),
  ...range(0x2066, 0x2069),
  ...['\u200e', '\u200f', '\u061c', '\u2028', '\u2029', '\u200b', '\ufeff', '\u{e0041}'],
];

/** Whether a text has one of them as it is. */
export const hasHarmful = (text: string): boolean => harmful.some((character) => text.includes(character));
