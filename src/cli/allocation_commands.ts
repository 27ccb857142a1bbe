import { type Command, InvalidArgumentError } from 'commander';
import { forEach } from '../client/for_each.ts';
import type { ConsumerAllocations, Provider, Resources } from '../client/index.ts';
import { amountOf, resourcesText } from './amounts.ts';
import {
  consumerArgument,
  expiresInOption,
  foundConsumer,
  ownedConsumerArgument,
  readConsumer,
  readOwned,
  typeOption,
} from './consumer_argument.ts';
import { holdingsByConsumer } from './consumer_filter.ts';
import { addDeleteCommand } from './delete_allocations_command.ts';
import { findProvider, namesOfHeld, providerArgument } from './find_provider.ts';
import { type OwnerOptions, ownerOf, readHeld } from './held.ts';
import { type IfMatchOption, ifMatchOption, retryUnlessChanged } from './if_match.ts';
import { addPlaceCommand } from './place_command.ts';
import { shellOf } from './shell.ts';
import { fields, type Printed } from './table.ts';

/** The amounts of a provider in one option. */
type Part<Which> = { readonly provider: Which; readonly amounts: readonly (readonly [name: string, amount: number])[] };

type AllocationSetOptions = IfMatchOption & OwnerOptions & { readonly allocation: readonly Part<string>[] };

/** Adds the commands of `placement allocation`. */
export function addAllocationCommands(program: Command): void {
  const allocation = program.command('allocation').description('what consumers have of providers');
  allocation
    .command('show')
    .description('show what a consumer has')
    .argument(...consumerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid: consumer } = await foundConsumer(placement, readConsumer(which, undefined, command));
      const held = await placement.allocations.show(consumer);
      const nameOf = await namesOfHeld(placement, [held]);
      print(held, () => heldText(consumer, held, nameOf));
    });
  allocation
    .command('list')
    .description('list the consumers that have something of a provider, with what, since when and until when')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid } = await findProvider(placement, which);
      const held = await placement.providers.allocations(uuid);
      const holdings = await holdingsByConsumer(placement, { resource_provider: uuid });
      const rows = Object.entries(held.allocations).map(([consumer, { name, resources }]) => {
        const [holding] = holdings.get(consumer) ?? [];
        return [
          consumer,
          name ?? undefined,
          holding?.project_id,
          holding?.user_id,
          holding?.consumer_type,
          resourcesText(resources),
          holding?.since ?? undefined,
          holding?.expires_at ?? undefined,
        ];
      });
      print(held, () => ({
        head: ['consumer', 'name', 'project', 'user', 'type', 'resources', 'since', 'expires'],
        rows,
      }));
    });
  allocation
    .command('set')
    .description('give a consumer these allocations and no others; what else is not given stays, also its term')
    .argument(...ownedConsumerArgument)
    .requiredOption(
      '-a, --allocation <rp=PROVIDER,CLASS=AMOUNT,...>',
      'what it has of a provider; may be repeated',
      collectParts,
    )
    .option('--project <id>', 'the project that it is counted for; needed for a new consumer')
    .option('--user <id>', 'the user that it is counted for; the default for a new consumer is the project')
    .addOption(typeOption('the kind of consumer; the default for a new consumer is INSTANCE'))
    .addOption(expiresInOption())
    .addOption(ifMatchOption('allocation show'))
    .addHelpText(
      'after',
      '\nExample: placement allocation set job-1 -a rp=host-1,VCPU=2,MEMORY_MB=2048 --project ci --user ada',
    )
    .action(async (which: string, options: AllocationSetOptions, command: Command) => {
      const { placement, print } = shellOf(command, heldColumns);
      const read = readOwned(which, options.project, command);
      const parts = await forEach(options.allocation, async ({ provider, amounts }) => ({
        provider: await findProvider(placement, provider),
        amounts,
      }));
      const allocations = allocationsOf(parts, command);
      const named = await foundConsumer(placement, read);
      const consumer = named.uuid;
      await retryUnlessChanged(options, async () => {
        const owner = ownerOf(await readHeld(placement, consumer), named, options, command);
        await placement.allocations.set(consumer, { allocations, ...owner }, { ifMatch: options.ifMatch });
      });
      const held = await placement.allocations.show(consumer);
      const nameOf = await namesOfHeld(placement, [held]);
      print(held, () => heldText(consumer, held, nameOf));
    });
  addPlaceCommand(allocation);
  addDeleteCommand(allocation);
}

/** Adds up the options for each provider. One option may name a provider by name and another by UUID. */
function allocationsOf(
  parts: readonly Part<Provider>[],
  command: Command,
): { readonly [provider: string]: { readonly resources: Resources } } {
  const byProvider = new Map<string, Resources>();
  for (const { provider, amounts } of parts) {
    for (const [name, amount] of amounts) {
      const before = byProvider.get(provider.uuid) ?? {};
      if (before[name] !== undefined) {
        command.error(
          `error: option '-a, --allocation' gives ${name} of provider ${provider.name} twice. ` +
            'Give each class of a provider once.',
        );
      }
      byProvider.set(provider.uuid, { ...before, [name]: amount });
    }
  }
  return Object.fromEntries([...byProvider].map(([uuid, resources]) => [uuid, { resources }]));
}

/** The columns of the tables of `heldText`. */
const heldColumns = [
  ['consumer', 'name', 'project', 'user', 'type', 'generation', 'expires'],
  ['provider', 'uuid', 'resources'],
];

function heldText(consumer: string, held: ConsumerAllocations, nameOf: (uuid: string) => string): Printed {
  const entries = Object.entries(held.allocations);
  if (entries.length === 0) return `Consumer ${consumer} has nothing.`;
  const about = fields([
    ['consumer', consumer],
    ['name', held.name ?? undefined],
    ['project', held.project_id],
    ['user', held.user_id],
    ['type', held.consumer_type],
    ['generation', held.consumer_generation ?? undefined],
    ['expires', held.expires_at ?? undefined],
  ]);
  const rows = entries.map(([uuid, { resources }]) => [nameOf(uuid), uuid, resourcesText(resources)]);
  return [about, { head: ['provider', 'uuid', 'resources'], rows }];
}

/**
 * Reads `rp=host-1,VCPU=2,MEMORY_MB=2048`. The amounts are the `CLASS=AMOUNT` at the end, so a name may have commas.
 */
function collectParts(text: string, before: readonly Part<string>[] = []): readonly Part<string>[] {
  const match = /^rp=(.+?)((?:,[A-Z0-9_]+=[^,]*)+)$/.exec(text);
  const [, provider = '', amounts = ''] = match ?? [];
  if (match === null) throw new InvalidArgumentError('Write it as rp=PROVIDER,CLASS=AMOUNT, such as rp=host-1,VCPU=2.');
  return [...before, { provider, amounts: amounts.slice(1).split(',').map(amountOf) }];
}
