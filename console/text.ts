import { shellWord } from '../src/cli/shell_word.ts';
import { controls } from '../src/text/print.ts';

/**
 * A text of the service for display. Control characters, and those that change the direction of the following text, are
 * shown as their code. Names that look alike may still differ: in blanks, or in letters that look alike or cannot be seen.
 */
export const visible = (text: string): string =>
  text.replace(
    controls,
    (character) => `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  );

const numbers = new Intl.NumberFormat('en');

/** `12,345`; with at most one digit behind the point. */
export const numberText = (value: number): string =>
  numbers.format(Math.abs(value) < 100 ? Math.round(value * 10) / 10 : Math.round(value));

/** What may be written behind a prefix. */
const bytes = /^(?:i?b)?$/i;
const bits = /^(?:bits?|bps|bits?\/s)?$/i;

/** The units of classes, by the end of their names, each with the next larger ones. `consumers of type CI_GB` is no class. */
const units: readonly {
  readonly end: RegExp;
  readonly step: number;
  readonly written: RegExp;
  readonly names: readonly [string, ...string[]];
}[] = [
  { end: /^\w+_KB$/, step: 1024, written: bytes, names: ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] },
  { end: /^\w+_MB$/, step: 1024, written: bytes, names: ['MiB', 'GiB', 'TiB', 'PiB'] },
  { end: /^\w+_GB$/, step: 1024, written: bytes, names: ['GiB', 'TiB', 'PiB'] },
  { end: /^\w+_KILOBIT_PER_SEC$/, step: 1000, written: bits, names: ['kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'] },
];

/** An amount of a class in a unit that is easy to read: `367.2 TiB` of MEMORY_MB; a number where the class names none. */
export function amountText(resourceClass: string, amount: number): string {
  const unit = units.find(({ end }) => end.test(resourceClass));
  if (unit === undefined) return numberText(amount);
  const { step, names } = unit;
  let [value, name] = [amount, names[0]];
  for (const larger of names.slice(1)) {
    if (Math.abs(value) < step) break;
    [value, name] = [value / step, larger];
  }
  return `${numberText(value)} ${name}`;
}

/** The prefixes of units, from the smallest. */
const prefixes = 'kmgtp';

/** Whether amounts of a class have a unit. */
export const hasUnit = (resourceClass: string): boolean => units.some(({ end }) => end.test(resourceClass));

/**
 * The amount that a user writes: a number, or one with a unit where the class has one. `200 GB`, `200 GiB` and `200g` of
 * MEMORY_MB are 204,800. Undefined for what is no whole amount above 0, for bits of a class of bytes, and for bytes of one of bits.
 */
export function amountFrom(resourceClass: string, text: string): number | undefined {
  const [, digits, prefix, rest = ''] =
    /^(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+)\s*(?:([kmgtp])([a-z/]*))?$/i.exec(text.trim()) ?? [];
  if (digits === undefined) return undefined;
  const unit = units.find(({ end }) => end.test(resourceClass));
  if (prefix !== undefined && unit?.written.test(rest) !== true) return undefined;
  const own = unit?.names[0].charAt(0).toLowerCase() ?? '';
  const steps = prefix === undefined ? 0 : prefixes.indexOf(prefix.toLowerCase()) - prefixes.indexOf(own);
  // Whole numbers, since 2.01 * 1000 is less than 2010.
  const [whole = '', fraction = ''] = digits.replaceAll(',', '').split('.');
  const step = BigInt(unit?.step ?? 1);
  const dividend = BigInt(whole + fraction) * step ** BigInt(Math.max(0, steps));
  const divisor = 10n ** BigInt(fraction.length) * step ** BigInt(Math.max(0, -steps));
  const amount = Number(dividend / divisor);
  return dividend % divisor === 0n && Number.isSafeInteger(amount) && amount > 0 ? amount : undefined;
}

const exactNumbers = new Intl.NumberFormat('en', { maximumFractionDigits: 20 });

/** The exact number of a class, as the service has it: `385,024,000 MEMORY_MB`. */
export const exactText = (resourceClass: string, amount: number): string =>
  `${exactNumbers.format(amount)} ${visible(resourceClass)}`;

/** `37%`. Only exactly none is 0%, and only exactly all is 100%. */
export function percentText(part: number): string {
  if (!Number.isFinite(part)) return '—';
  const percent = part * 100;
  if (percent > 0 && percent < 1) return '<1%';
  if (percent > 99 && percent < 100) return '>99%';
  return `${Math.round(percent)}%`;
}

/** `1 host`, `2 hosts` */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

/** The first part of a UUID, for where there is little room. */
export const shortUuid = (uuid: string): string => uuid.slice(0, 8);

const times = new Intl.DateTimeFormat('en-CA', { dateStyle: 'short', timeStyle: 'medium', hourCycle: 'h23' });

const zones = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' });
const hourMs = 3_600_000;

/** A time of an answer in the zone of the user: `2026-03-29 17:04:05`; with `GMT+2` in the hour that comes twice in autumn. */
export function timeText(text: string | null | undefined): string {
  if (text === null || text === undefined) return '—';
  const ms = Date.parse(text);
  const shown = times.format(ms);
  const isTwice = times.format(ms - hourMs) === shown || times.format(ms + hourMs) === shown;
  const zone = isTwice ? zones.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value : undefined;
  return [...shown.split(', '), ...(zone === undefined ? [] : [zone])].join(' ');
}

const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' });

/** The time of day, in the time zone of the user: `17:04:05`. */
export const clockText = (at: Date): string => clock.format(at);

const seconds = { d: 86_400, h: 3_600, min: 60, s: 1 };

/** How long ago a time of an answer is, in the largest unit: `3 min ago`. The clocks of the user and of the service may differ. */
export function ageText(text: string): string {
  const age = Math.max(0, (Date.now() - Date.parse(text)) / 1000);
  const [unit, length] = Object.entries(seconds).find(([, each]) => age >= each) ?? ['s', 1];
  return `${Math.floor(age / length)} ${unit} ago`;
}

/** A request as a command. The token is in the environment, so that no one copies it. */
export const curlOf = (url: string, path: string, version: string): string =>
  `curl -sS -H "X-Auth-Token: $OS_TOKEN" -H 'OpenStack-API-Version: placement ${version}' ${shellWord(url + path)}`;

/** A cell of a table that a spreadsheet shows as text, and does not take for a formula. */
export const safeCell = (cell: string | number | undefined): string | number | undefined =>
  typeof cell === 'string' && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
