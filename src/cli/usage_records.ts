import type { Command } from 'commander';
import type { UsageRecord } from '../client/index.ts';
import { consumerFilter } from './consumer_filter.ts';
import { shellOf } from './shell.ts';
import { takeUsageFilter, type UsageFilterOptions, warnOfUnknownClass } from './usage_filter.ts';

type RecordsOptions = UsageFilterOptions & { readonly open?: true };

/** Adds `placement usage records`. */
export function addUsageRecords(usage: Command): void {
  const records = usage
    .command('records')
    .description('list who held what, where, and from when until when, if the service keeps a history; from 2.9');
  takeUsageFilter(records)
    .option('--open', 'only what is held now')
    .addHelpText('after', '\nExample: placement usage records --from 1h --class PGPU')
    .action(async ({ from, until, open, ...options }: RecordsOptions, command: Command) => {
      const { placement, print } = shellOf(command, [head]);
      const found = await Array.fromAsync(
        placement.usageRecords.list({
          ...(await consumerFilter(placement, options)),
          resource_class: options.class,
          from,
          until,
          open,
        }),
      );
      await warnOfUnknownClass(placement, options.class, found.length);
      print(found, () => ({ head, rows: found.map(rowOf) }));
    });
}

const head = ['consumer', 'name', 'project', 'user', 'type', 'provider', 'class', 'amount', 'from', 'until', 'ended'];

const rowOf = ({ resource_provider: provider, ...record }: UsageRecord) => [
  record.consumer,
  record.name ?? undefined,
  record.project_id,
  record.user_id,
  record.consumer_type,
  provider.name ?? provider.uuid,
  record.resource_class,
  record.amount,
  record.from,
  record.until ?? undefined,
  record.ended ?? undefined,
];
