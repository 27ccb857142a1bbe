import { type Command, InvalidArgumentError } from 'commander';
import type { Placement } from '../client/index.ts';
import { printError } from '../text/print.ts';
import { nearNames } from '../text/strings.ts';
import { typeOption } from './consumer_argument.ts';
import { type ConsumerFilterOptions, consumerFilter } from './consumer_filter.ts';
import { readDuration } from './duration.ts';
import { findUuid } from './find_provider.ts';

/** The options of commands about the history of usages. */
export type UsageFilterOptions = ConsumerFilterOptions & {
  readonly consumer?: string;
  readonly name?: string;
  readonly from?: string;
  readonly until?: string;
  readonly class?: string;
};

/** What people see where there is nothing: the service answers the same whether it keeps a history or not. */
export const noUsage =
  'Nothing is recorded that meets this. A history is kept only while the service has [history] enabled = true.';

/** Adds these options to a command. @returns it */
export const takeUsageFilter = (command: Command): Command =>
  command
    .option('--from <time>', 'from this time on, such as 2026-11-01T00:00:00Z; or 8h, which is so long ago', readTime)
    .option('--until <time>', 'until this time, or until so long ago', readTime)
    .option('--consumer <uuid>', 'only of this consumer, which need not exist any more')
    .option('--name <name>', 'only of consumers with this name now, or when they released')
    .option('--project <id>', 'only of this project')
    .option('--user <id>', 'only of this user')
    .addOption(typeOption('only of consumers of this type; unknown for those without one', 'unknown'))
    .option('--provider <provider>', 'only of this provider; of one that was deleted by its UUID')
    .option('--in-tree <provider>', 'only of the tree that this provider belongs to')
    .option('--class <class>', 'only of this resource class');

/** The parameters of a query for these options. Records of a provider stay when it is deleted. */
export const usageFilter = async (
  placement: Placement,
  { provider, class: resource_class, consumer, name, from, until, ...options }: UsageFilterOptions,
) => ({
  ...(await consumerFilter(placement, options)),
  resource_provider: provider === undefined ? undefined : await findUuid(placement, provider),
  consumer,
  name,
  resource_class,
  from,
  until,
});

/** Warns of a class that does not exist, where nothing was found: records of a class that was deleted stay, so it is no error. */
export async function warnOfUnknownClass(placement: Placement, name: string | undefined, found: number): Promise<void> {
  if (name === undefined || found > 0) return;
  const classes = new Set(await placement.resourceClasses.list());
  if (classes.has(name)) return;
  const near = nearNames(name, classes);
  printError(`Warning: there is no resource class ${name} now.${near === undefined ? '' : ` Did you mean ${near}?`}`);
}

/** A time as the service reads it: as it is written, or so long before now. A number alone is too likely to be a year. */
function readTime(text: string): string {
  if (/^\d{4}-\d\d-\d\dT/.test(text)) return text;
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return `${text}T00:00:00Z`;
  if (/[a-z]$/.test(text)) return new Date(Date.now() - readDuration(text) * 1000).toISOString();
  throw new InvalidArgumentError(
    'Write a time as 2026-11-01T00:00:00Z, a day as 2026-11-01, or how long ago it is as 8h.',
  );
}
