import { InvalidArgumentError, Option } from 'commander';

/**
 * The option for the type of a consumer. The command itself refuses an invalid type, because the server would answer
 * with a regular expression.
 *
 * @param words other values that are allowed, such as `unknown` where the type selects consumers
 */
export const typeOption = (description: string, ...words: readonly string[]): Option =>
  new Option('--type <TYPE>', description).argParser((text, before?: string) => {
    if (before !== undefined) throw new InvalidArgumentError('It is given twice. Give it once.');
    if (words.includes(text) || /^[A-Z0-9_]{1,255}$/.test(text)) return text;
    const meant = text.toUpperCase().replaceAll(/[^A-Z0-9_]+/g, '_');
    const suggestion = /[A-Z]/.test(meant) ? `, such as ${meant}` : '';
    throw new InvalidArgumentError(`The type of a consumer has capital letters, digits and _${suggestion}.`);
  });
