import { InvalidArgumentError, Option } from 'commander';

/** Reads a number of seconds of a command line. */
export function readSeconds(text: string): number {
  if (/^[1-9][0-9]{0,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give whole seconds from 1 to 9999999999, such as 120.');
}

/** The option that gives a claim a term. */
export const expiresInOption = (): Option =>
  new Option(
    '--expires-in <seconds>',
    'the consumer is removed after this time, unless its term is renewed; from 1.45',
  ).argParser(readSeconds);
