import type { Command } from 'commander';
import { type Placement, retryConflicts } from '../client/index.ts';
import { listOperations } from './differences.ts';
import { CommandFailure } from './exit_codes.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { meaningOfClass, meaningOfTrait } from './meanings.ts';
import { shellOf } from './shell.ts';
import { column } from './table.ts';

// Traits

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
        const traits = await readTraits(placement, which, options);
        print(traits, () => ({ head: ['trait', 'meaning'], rows: traits.map((name) => [name, meaningOfTrait(name)]) }));
      },
    );
  for (const { verb, description } of traitChanges) {
    trait
      .command(verb)
      .description(description)
      .argument(...providerArgument)
      .argument(verb === 'set' ? '[TRAIT...]' : '<TRAIT...>', 'the traits')
      .action(async (which: string, names: readonly string[], _options: object, command: Command) => {
        const { placement, print } = shellOf(command, [['trait']]);
        const { uuid } = await findProvider(placement, which);
        if (verb !== 'remove') await checkKnownTraits(placement, names);
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

const traitChanges = [
  { verb: 'set', description: 'give a provider these traits and no others' },
  { verb: 'add', description: 'give a provider more traits' },
  { verb: 'remove', description: 'take traits from a provider' },
] as const;

async function readTraits(
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

/** Checks the names before the request, because the message of the server has no remedy. */
async function checkKnownTraits(placement: Placement, names: readonly string[]): Promise<void> {
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

// Resource classes

/** Adds the commands of `placement class`. */
export function addClassCommands(program: Command): void {
  const resourceClass = program.command('class').description('resource classes: the kinds of things that are counted');
  resourceClass
    .command('list')
    .description('list the resource classes')
    .option('--custom', 'only custom ones')
    .action(async ({ custom }: { readonly custom?: true }, command: Command) => {
      const { placement, print } = shellOf(command);
      const all = await placement.resourceClasses.list();
      const names = custom ? all.filter((name) => name.startsWith('CUSTOM_')) : all;
      print(names, () => ({ head: ['class', 'counts'], rows: names.map((name) => [name, meaningOfClass(name)]) }));
    });
  addCustomNameCommands(resourceClass, {
    noun: 'classes',
    one: 'class',
    holder: 'inventory',
    calls: ({ resourceClasses }) => resourceClasses,
  });
}

// Custom names of both

/** Traits or resource classes: what they are called, what may have them, and the calls for one name. */
type Kind = {
  readonly noun: string;
  readonly one: string;
  readonly holder: string;
  readonly calls: (placement: Placement) => {
    ensure(name: string): Promise<unknown>;
    delete(name: string): Promise<unknown>;
  };
};

/** Adds `create` and `delete` for custom names to `placement trait` or `placement class`. */
function addCustomNameCommands(group: Command, { noun, one, holder, calls }: Kind): void {
  group
    .command('create')
    .description(`make sure that custom ${noun} exist`)
    .argument('<CUSTOM_NAME...>', 'their names, which begin with CUSTOM_')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      checkCustomNames(names, one);
      await oneAfterTheOther(names, calls(placement).ensure, (made) =>
        print(made, () => `There is ${made.join(', ')} now.`),
      );
    });
  group
    .command('delete')
    .description(`delete custom ${noun} that no ${holder} has`)
    .argument('<CUSTOM_NAME...>', 'their names')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      await oneAfterTheOther(names, calls(placement).delete, (gone) =>
        print(gone, () => `${gone.join(', ')} deleted.`),
      );
    });
}

/** Checks names before the request, because the server would answer with a regular expression. @param kind such as `class` */
function checkCustomNames(names: readonly string[], kind: string): void {
  const wrong = names.find((name) => !/^CUSTOM_[A-Z0-9_]{1,248}$/.test(name));
  if (wrong === undefined) return;
  const meant = wrong
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]+/g, '_')
    .replace(/^CUSTOM_/, '');
  const suggestion = /[A-Z0-9]/.test(meant) && meant.length < 240 ? `, such as CUSTOM_${meant}` : '';
  throw new CommandFailure(
    'wrongInput',
    `"${wrong}" is no name for a ${kind} of your own: that begins with CUSTOM_ and has capital letters, digits and _${suggestion}.`,
  );
}

/** Runs a call for each name, one after the other. Prints the names that succeeded, even if a later one fails. */
async function oneAfterTheOther(
  names: readonly string[],
  call: (name: string) => Promise<unknown>,
  printDone: (done: readonly string[]) => void,
): Promise<void> {
  const done: string[] = [];
  try {
    for (const name of names) {
      await call(name);
      done.push(name);
    }
  } finally {
    if (done.length > 0) printDone(done);
  }
}
