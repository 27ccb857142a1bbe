import { InvalidArgumentError } from 'commander';

/** Reads a number of a command line. @throws InvalidArgumentError if it is not above zero */
export function positive(text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new InvalidArgumentError('It must be a positive number.');
}

/** Reads an integer of a command line. @throws InvalidArgumentError if it is none */
export function integer(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('It must be an integer.');
}

/** A new seed for random choices. */
export const anySeed = (): number => Math.floor(Math.random() * 2 ** 31);
