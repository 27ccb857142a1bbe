import { type Command, InvalidArgumentError, Option } from 'commander';
import type { UsageTotal, UsageTotalKey } from '../client/index.ts';
import { shellOf } from './shell.ts';
import type { Cell } from './table.ts';
import { noUsage, takeUsageFilter, type UsageFilterOptions, usageFilter, warnOfUnknownClass } from './usage_filter.ts';

/** The keys of the lines of a report, in addition to the class: the word on the command line, and the key of the service. */
const keys = {
  project: 'project_id',
  user: 'user_id',
  type: 'consumer_type',
  provider: 'resource_provider',
  month: 'month',
  day: 'day',
} as const satisfies Readonly<Record<string, UsageTotalKey>>;

type ReportOptions = UsageFilterOptions & {
  readonly month?: string;
  readonly by: readonly (keyof typeof keys)[];
};

/** Adds `placement usage report`. */
export function addUsageReport(usage: Command): void {
  const report = usage
    .command('report')
    .description('sum up what was used, in amounts times hours, if the service keeps a history; from 2.9')
    .addOption(
      new Option('--month <YYYY-MM>', 'what was used in this month, in UTC')
        .argParser(readMonth)
        .conflicts(['from', 'until']),
    )
    .addOption(
      new Option('--by <what>', `a line for each of these, and for each class: some of ${Object.keys(keys).join(', ')}`)
        .argParser(readKeys)
        .default(['project'], 'project'),
    );
  takeUsageFilter(report)
    .addHelpText('after', '\nExample: placement usage report --month 2026-11 --by project --format csv')
    .action(async ({ month, by, ...options }: ReportOptions, command: Command) => {
      const { placement, print, format } = shellOf(command);
      const totals = await placement.usageRecords.totals([...by.map((key) => keys[key]), 'resource_class'], {
        ...(await usageFilter(placement, options)),
        ...(month === undefined ? {} : timeOf(month)),
      });
      await warnOfUnknownClass(placement, options.class, totals.length);
      const head = [...by, 'class', 'amount hours'];
      const rows = totals.map((total) => [
        ...by.map((key) => cellOf(total, key)),
        total.resource_class,
        // A spreadsheet adds them up: many short times are no 0 there.
        format === 'table' ? rounded(total) : total.amount_hours,
      ]);
      print(totals, () => ({ head, rows, orElse: noUsage }));
    });
}

function cellOf(total: UsageTotal, key: keyof typeof keys): Cell {
  return key === 'provider' ? (total.resource_provider?.name ?? total.resource_provider?.uuid) : total[keys[key]];
}

const rounded = ({ amount_hours: hours }: UsageTotal): number => Math.round(hours * 1000) / 1000;

function readMonth(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError('Write a month as 2026-11.');
}

/** From the beginning of a month until that of the next one. */
function timeOf(month: string): { readonly from: Date; readonly until: Date } {
  const [from, until] = [new Date(`${month}-01`), new Date(`${month}-01`)];
  until.setUTCMonth(until.getUTCMonth() + 1);
  return { from, until };
}

function readKeys(text: string): readonly (keyof typeof keys)[] {
  const words = text.split(',');
  const isKey = (word: string): word is keyof typeof keys => Object.hasOwn(keys, word);
  if (!words.every(isKey) || new Set(words).size < words.length) {
    throw new InvalidArgumentError(`Write different ones of ${Object.keys(keys).join(', ')}, with commas between.`);
  }
  return words;
}
