import type { Command } from 'commander';
import { resourcesText } from './amounts.ts';
import { typeOption } from './consumer_argument.ts';
import { type ConsumerFilterOptions, consumerFilter } from './consumer_filter.ts';
import { shellOf } from './shell.ts';

type HoldingOptions = ConsumerFilterOptions & { readonly class?: string };

/** Adds `placement holdings`. */
export function addHoldingsCommand(program: Command): void {
  program
    .command('holdings')
    .description('show which consumers hold what, and where; with several options what meets all of them; from 2.9')
    .option('--project <id>', 'of this project')
    .option('--user <id>', 'of this user')
    .addOption(typeOption('of consumers of this type; unknown for those without one', 'unknown'))
    .option('--provider <provider>', 'of this provider')
    .option('--in-tree <provider>', 'of the tree that this provider belongs to')
    .option('--class <class>', 'of this resource class')
    .addHelpText('after', '\nWith --format csv there is a line for each class.')
    .action(async (options: HoldingOptions, command: Command) => {
      const { placement, print, format } = shellOf(command);
      const query = { ...(await consumerFilter(placement, options)), resource_class: options.class };
      const holdings = await Array.fromAsync(placement.holdings.list(query));
      const owner = ['consumer', 'name', 'project', 'user', 'type', 'provider', 'root'];
      const cells = holdings.map(({ consumer, name, resource_provider, root, ...holding }) => ({
        ...holding,
        first: [
          consumer,
          name ?? undefined,
          holding.project_id,
          holding.user_id,
          holding.consumer_type,
          resource_provider.name,
          root.name,
        ],
        last: [holding.since ?? undefined, holding.expires_at ?? undefined],
      }));
      print(holdings, () => {
        if (format !== 'csv') {
          return {
            head: [...owner, 'resources', 'since', 'expires'],
            rows: cells.map(({ first, resources, last }) => [...first, resourcesText(resources), ...last]),
          };
        }
        const rows = cells.flatMap(({ first, resources, last }) =>
          Object.entries(resources).map(([name, amount]) => [...first, name, amount, ...last]),
        );
        return { head: [...owner, 'class', 'amount', 'since', 'expires'], rows };
      });
    });
}
