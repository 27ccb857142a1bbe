import type { Command } from 'commander';
import type { Inventories, NewInventory, Placement } from '../client/index.ts';
import { printError } from '../text/print.ts';
import { changedInventory, collectInventory, type InventoryChanges } from './amounts.ts';
import { drainedProviders, openAgain } from './drain_marks.ts';
import { CommandFailure } from './exit_codes.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { type IfMatchOption, ifMatchOption, retryUnlessChanged } from './if_match.ts';
import { overuseOf, warnOfOveruse } from './overuse.ts';
import { inventoryColumns, inventoryTable } from './provider_picture.ts';
import { shellOf } from './shell.ts';

/** Adds the commands of `placement inventory`. */
export function addInventoryCommands(program: Command): void {
  const inventory = program.command('inventory').description('what providers have, by resource class');
  inventory
    .command('list')
    .description('list the inventories of a provider, with what is used')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid } = await findProvider(placement, which);
      const [inventories, { usages }] = await Promise.all([
        placement.inventories.list(uuid),
        placement.usages.ofProvider(uuid),
      ]);
      print({ ...inventories, usages }, () => inventoryTable(inventories.inventories, usages));
    });
  inventory
    .command('set')
    .description('set inventories; classes and fields that are not named stay as they are')
    .argument(...providerArgument)
    .argument(
      '<CLASS[:FIELD]=VALUE...>',
      'VCPU=8 is the total, VCPU:allocation_ratio=4 another field',
      collectInventory,
    )
    .option('--replace', 'take away the classes that are not named')
    .addOption(ifMatchOption('inventory list'))
    .addHelpText(
      'after',
      '\nFields: total, reserved, min_unit, max_unit, step_size, allocation_ratio.\n' +
        'Example: placement inventory set host-1 VCPU=8 VCPU:allocation_ratio=4 MEMORY_MB=16384 MEMORY_MB:reserved=512',
    )
    .action(async (which: string, changes: InventoryChanges, options: InventorySetOptions, command: Command) => {
      const { placement, print } = shellOf(command, [inventoryColumns]);
      const { uuid, name } = await findProvider(placement, which);
      const written = await change(placement, uuid, options, (old) => ({
        ...(options.replace ? {} : old),
        ...Object.fromEntries(
          Object.entries(changes).map(([one, fields]) => [one, changedInventory(one, old[one], fields)]),
        ),
      }));
      const { usages } = await placement.usages.ofProvider(uuid);
      print(written, () => inventoryTable(written.inventories, usages));
      const changed = Object.keys(changes).map((one) => [one, written.inventories[one]] as const);
      warnOfOveruse(overuseOf(changed, usages));
      const isOpen = Object.values(written.inventories).some(({ reserved, total }) => reserved < total);
      if (isOpen && (await drainedProviders(placement, uuid)).has(uuid)) {
        printError(`Warning: ${openAgain(name)}`);
      }
    });
  inventory
    .command('delete')
    .description('delete inventories that nothing is allocated of')
    .argument(...providerArgument)
    .argument('[CLASS...]', 'the classes')
    .option('--all', 'all classes')
    .addOption(ifMatchOption('inventory list'))
    .action(async (which: string, classes: readonly string[], options: DeleteOptions, command: Command) => {
      const { all } = options;
      const { placement, print } = shellOf(command, []);
      if ((classes.length === 0) === (all === undefined)) {
        command.error('error: Give the classes to delete, or --all.');
      }
      const { uuid, name } = await findProvider(placement, which);
      const written = await change(placement, uuid, options, (old) => {
        if (all) return {};
        const missing = classes.find((one) => old[one] === undefined);
        if (missing !== undefined)
          throw new CommandFailure('wrongInput', `Provider ${name} has no inventory of ${missing}.`);
        return Object.fromEntries(Object.entries(old).filter(([one]) => !classes.includes(one)));
      });
      print(written, () => `Provider ${name} has left: ${Object.keys(written.inventories).join(', ') || 'nothing'}.`);
    });
}

type InventorySetOptions = IfMatchOption & { readonly replace?: true };
type DeleteOptions = IfMatchOption & { readonly all?: true };

type InventoryChange = (old: Inventories['inventories']) => { readonly [resourceClass: string]: NewInventory };

/** Reads, changes and writes the inventories of a provider. Repeats this if another client changed them in between. */
const change = (
  placement: Placement,
  uuid: string,
  options: IfMatchOption,
  decide: InventoryChange,
): Promise<Inventories> =>
  retryUnlessChanged(options, async () => {
    const { inventories, resource_provider_generation } = await placement.inventories.list(uuid);
    const changed = { inventories: decide(inventories), resource_provider_generation };
    return placement.inventories.set(uuid, changed, { ifMatch: options.ifMatch });
  });
