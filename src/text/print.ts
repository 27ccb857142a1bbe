/** Prints a text of one or more lines on standard output, with control characters escaped. */
export const print = (text: string): void => console.log(escapeControlsInLines(text));

/** Prints a text of one or more lines on standard error, with control characters escaped. */
export const printError = (text: string): void => console.error(escapeControlsInLines(text));

/** The message of a value that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/*
 * Texts from outside, such as names, may have characters that a terminal obeys instead of showing them, and characters that change the
 * direction of text or cannot be seen: control characters (C0, delete and C1), the format characters of Unicode, among them all
 * bidirectional ones, and its separators of lines and paragraphs.
 */

/** Each of them, of a text. */
export const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const controlsInLines = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** A text without any other character has none of them, which is found out much faster. */
const isPlain = /^[\n\x20-\x7e]*$/;

/** Escapes all of them, as `\n` or `\u{1b}`: for a part of a line. */
export const escapeControls = (text: string): string =>
  text.replace(controls, (character) => escapes[character] ?? unicodeEscape(character));

/** Escapes all of them but line feeds, for a text of several lines. */
export const escapeControlsInLines = (text: string): string =>
  isPlain.test(text)
    ? text
    : text.replace(controlsInLines, (character) => escapes[character] ?? unicodeEscape(character));

/** Escapes them in JSON text as `\u009b`, so that it is parsed to the same; line feeds between its parts stay. */
export const escapeControlsInJson = (json: string): string =>
  isPlain.test(json)
    ? json
    : json.replace(controlsInLines, (character) => character.split('').map(jsonEscape).join(''));

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const unicodeEscape = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

const jsonEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
