import { escapeControlsInLines } from './controls.ts';

/** Prints a text of one or more lines on standard output, with control characters escaped. */
export const print = (text: string): void => console.log(escapeControlsInLines(text));

/** Prints a text of one or more lines on standard error, with control characters escaped. */
export const printError = (text: string): void => console.error(escapeControlsInLines(text));
