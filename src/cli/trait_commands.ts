import type { Command } from 'commander';
import { type Placement, retryConflicts } from '../client/index.ts';
import { addCustomNameCommands, checkCustomNames } from './custom_names.ts';
import { CommandFailure } from './exit_codes.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { listOperations } from './list_operations.ts';
import { meaningOfTrait } from './meanings.ts';
import { shellOf } from './shell.ts';
import { column } from './table.ts';

/** Adds the commands of `placement trait`. */
export function addTraitCommands(program: Command): void {
  const trait = program.command('trait').description('qualities that providers have or lack');
  trait
    .command('list')
    .description('list the traits of a provider, or all there are')
    .argument('[provider]', 'its name or UUID')
    .option('--prefix <text>', 'only those that begin with this, such as HW_CPU or CUSTOM_')
    .option('--used', 'only those that some provider has')
    .action(
      async (
        which: string | undefined,
        options: { readonly prefix?: string; readonly used?: true },
        command: Command,
      ) => {
        const { placement, print } = shellOf(command);
        const traits = await read(placement, which, options);
        print(traits, () => ({ head: ['trait', 'meaning'], rows: traits.map((name) => [name, meaningOfTrait(name)]) }));
      },
    );
  for (const { verb, description } of changes) {
    trait
      .command(verb)
      .description(description)
      .argument(...providerArgument)
      .argument(verb === 'set' ? '[TRAIT...]' : '<TRAIT...>', 'the traits')
      .action(async (which: string, names: readonly string[], _options: object, command: Command) => {
        const { placement, print } = shellOf(command, [['trait']]);
        const { uuid } = await findProvider(placement, which);
        if (verb !== 'remove') await checkKnown(placement, names);
        const { traits } = await retryConflicts(async () => {
          const { traits: old, resource_provider_generation } = await placement.providerTraits.show(uuid);
          return placement.providerTraits.set(uuid, {
            traits: listOperations[verb](old, names),
            resource_provider_generation,
          });
        });
        print(traits, () => column('trait', traits));
      });
  }
  addCustomNameCommands(trait, { noun: 'traits', one: 'trait', holder: 'provider', calls: ({ traits }) => traits });
}

const changes = [
  { verb: 'set', description: 'give a provider these traits and no others' },
  { verb: 'add', description: 'give a provider more traits' },
  { verb: 'remove', description: 'take traits from a provider' },
] as const;

async function read(
  placement: Placement,
  which: string | undefined,
  { prefix, used }: { readonly prefix?: string; readonly used?: true },
): Promise<readonly string[]> {
  if (which === undefined) {
    return placement.traits.list({
      name: prefix === undefined ? undefined : `startswith:${prefix}`,
      associated: used,
    });
  }
  const { uuid } = await findProvider(placement, which);
  const { traits } = await placement.providerTraits.show(uuid);
  return prefix === undefined ? traits : traits.filter((name) => name.startsWith(prefix));
}

/** Checks the names here, because the message of the server would not say what to do. */
async function checkKnown(placement: Placement, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const known = new Set(await placement.traits.list({ name: `in:${names.join(',')}` }));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  const custom = unknown.filter((name) => name.startsWith('CUSTOM_'));
  checkCustomNames(custom, 'trait');
  const remedy =
    custom.length === unknown.length
      ? `Create it first: placement trait create ${custom.join(' ')}`
      : '"placement trait list" shows those there are; others begin with CUSTOM_.';
  throw new CommandFailure('wrongInput', `There is no trait ${unknown.join(', ')}. ${remedy}`);
}
