import { InvalidArgumentError } from 'commander';

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const mostSeconds = 315_360_000;

/**
 * Reads `90d`, `12h`, `30m` or `45s`.
 *
 * @returns seconds
 * @throws InvalidArgumentError, which commander prints with the option
 */
export function readDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (secondsOf[unit] ?? 0);
  if (seconds >= 1 && seconds <= mostSeconds) return seconds;
  throw new InvalidArgumentError(`It is a number with a unit, up to ${mostSeconds / 86_400}d: 90d, 12h, 30m, 45s.`);
}
