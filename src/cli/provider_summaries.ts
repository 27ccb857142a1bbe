import type { Command } from 'commander';
import { collect, resourcesText } from './amounts.ts';
import { findProvider } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { table } from './table.ts';

type Options = {
  readonly required?: readonly string[];
  readonly memberOf?: readonly string[];
  readonly inTree?: string;
};

/** Adds `provider summary` to the commands about providers. */
export function addProviderSummaries(provider: Command): void {
  provider
    .command('summary')
    .description('list providers with all their data and usages, in a few requests; from 1.41')
    .option('--required <trait>', 'with this trait, or without it: !TRAIT; may be repeated', collect)
    .option('--member-of <aggregate>', 'in this aggregate, or outside of it: !UUID; may be repeated', collect)
    .option('--in-tree <provider>', 'in the same tree as this one')
    .action(async ({ required, memberOf, inTree }: Options, command: Command) => {
      const { placement, print } = shellOf(command);
      const in_tree = inTree === undefined ? undefined : (await findProvider(placement, inTree)).uuid;
      const query = { required, member_of: memberOf, in_tree };
      const summaries = await Array.fromAsync(placement.providerSummaries.list(query));
      print(summaries, () =>
        table(
          ['name', 'uuid', 'total', 'used', 'traits'],
          summaries.map((one) => [
            one.name,
            one.uuid,
            resourcesText(
              Object.fromEntries(Object.entries(one.inventories).map(([name, { total }]) => [name, total])),
            ),
            resourcesText(one.usages),
            one.traits.join(', '),
          ]),
        ),
      );
    });
}
