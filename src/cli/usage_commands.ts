import type { Command } from 'commander';
import { isByType, type UsageRecord } from '../client/index.ts';
import { capacityOf } from '../client/inventories.ts';
import { typeOption } from './consumer_argument.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { noUsage, takeUsageFilter, type UsageFilterOptions, usageFilter, warnOfUnknownClass } from './usage_filter.ts';
import { addUsageReport } from './usage_report.ts';

type UsageListOptions = { readonly project: string; readonly user?: string; readonly type?: string };

/** Adds the commands of `placement usage`. */
export function addUsageCommands(program: Command): void {
  const usage = program
    .command('usage')
    .description('usages: sums of what is allocated now, and of what was allocated');
  usage
    .command('show')
    .description('show what is used of a provider')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid } = await findProvider(placement, which);
      const [{ inventories }, used] = await Promise.all([
        placement.inventories.list(uuid),
        placement.usages.ofProvider(uuid),
      ]);
      print(used, () => ({
        head: ['class', 'used', 'capacity', 'free'],
        rows: Object.entries(inventories).map(([name, inventory]) => {
          const amount = used.usages[name] ?? 0;
          // The free amount is below zero if more is used than there is, for example after a total was lowered. Users
          // look for this.
          return [name, amount, capacityOf(inventory), capacityOf(inventory) - amount];
        }),
      }));
    });
  usage
    .command('list')
    .description('list what a project uses')
    .requiredOption('--project <id>', 'the project')
    .option('--user <id>', 'only what is counted for this user')
    .addOption(typeOption('only consumers of this type; all for one sum', 'all', 'unknown'))
    .action(async ({ project, user, type }: UsageListOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const usages = await placement.usages.ofProject({ project_id: project, user_id: user, consumer_type: type });
      print(usages, () => {
        if (!isByType(usages)) return { head: ['class', 'used'], rows: Object.entries(usages) };
        const rows = Object.entries(usages).flatMap(([kind, { consumer_count, ...amounts }]) =>
          Object.entries(amounts).map(([name, used]) => [kind, consumer_count, name, used]),
        );
        return { head: ['consumer type', 'consumers', 'class', 'used'], rows };
      });
    });
  addUsageReport(usage);
  addUsageRecords(usage);
}

type RecordsOptions = UsageFilterOptions & { readonly open?: true };

/** Adds `placement usage records`. */
function addUsageRecords(usage: Command): void {
  const records = usage
    .command('records')
    .description('list who held what, where, and from when until when, if the service keeps a history; from 2.9');
  takeUsageFilter(records)
    .option('--open', 'only what is held now')
    .addHelpText('after', '\nExample: placement usage records --from 1h --class PGPU')
    .action(async ({ open, ...options }: RecordsOptions, command: Command) => {
      const { placement, print } = shellOf(command, [head]);
      const query = { ...(await usageFilter(placement, options)), open };
      const found = await Array.fromAsync(placement.usageRecords.list(query));
      await warnOfUnknownClass(placement, options.class, found.length);
      print(found, () => ({ head, rows: found.map(rowOf), orElse: noUsage }));
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
