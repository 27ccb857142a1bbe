import { InvalidArgumentError } from 'commander';

const secondsOf = { d: 86_400, h: 3600, m: 60, s: 1 } as const;
const mostDays = 3650;

/** A time in the form that `readDuration` reads, such as `1h30m`. */
export function durationText(seconds: number): string {
  let left = seconds;
  const parts = Object.entries(secondsOf).map(([unit, each]) => {
    const count = Math.floor(left / each);
    left -= count * each;
    return count === 0 ? '' : `${count}${unit}`;
  });
  return parts.join('') || '0s';
}

/**
 * Reads `90`, which is of seconds, `45s`, `30m`, `8h`, `2d`, or several units from the largest on: `1h30m`.
 *
 * @returns seconds
 * @throws InvalidArgumentError, which commander prints with the option
 */
export function readDuration(text: string): number {
  const { groups: counts = {} } =
    /^(?=\d)(?:(?<d>\d{1,9})d)?(?:(?<h>\d{1,9})h)?(?:(?<m>\d{1,9})m)?(?:(?<s>\d{1,9})s?)?$/.exec(text) ?? {};
  const seconds = Object.entries(secondsOf).reduce((sum, [unit, each]) => sum + Number(counts[unit] ?? 0) * each, 0);
  if (seconds >= 1 && seconds <= mostDays * secondsOf.d) return seconds;
  throw new InvalidArgumentError(
    `It is a time from 1 s to ${mostDays}d, such as 45s, 30m, 8h, 2d or 1h30m; a number alone is of seconds.`,
  );
}
