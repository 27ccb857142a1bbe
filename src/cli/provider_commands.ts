import type { Command } from 'commander';
import type { Placement, Provider, Resources } from '../client/index.ts';
import { printError } from '../text/print.ts';
import { compareNames } from '../text/strings.ts';
import { collect, collectAmounts, resourcesText } from './amounts.ts';
import { drainedProviders } from './drain_marks.ts';
import { findProvider, namesOf, providerArgument, uuidIfNamed } from './find_provider.ts';
import { type IfMatchOption, ifMatchOption, retryUnlessChanged } from './if_match.ts';
import { readPicture, showPicture } from './provider_picture.ts';
import { addProviderTree } from './provider_tree.ts';
import { shellOf } from './shell.ts';
import { shellWord } from './shell_word.ts';
import { fields } from './table.ts';

type ProviderOptions = {
  readonly required?: readonly string[];
  readonly memberOf?: readonly string[];
  readonly inTree?: string;
};

type ProviderListOptions = ProviderOptions & { readonly name?: string; readonly resource?: Resources };

/** Adds the commands of `placement provider`. */
export function addProviderCommands(program: Command): void {
  const provider = program.command('provider').description('resource providers: hosts, NUMA nodes, devices, pools');
  provider
    .command('list')
    .description('list providers; with several options those for which all hold')
    .option('--name <name>', 'the one of this name')
    .option('-r, --resource <CLASS=AMOUNT>', 'with room for so much; may be repeated', collectAmounts)
    .option('--required <trait>', 'with this trait, or without it: !TRAIT; may be repeated', collect)
    .option('--member-of <aggregate>', 'in this aggregate, or outside of it: !UUID; may be repeated', collect)
    .option('--in-tree <provider>', 'in the same tree as this one')
    .action(async (options: ProviderListOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const { name, resource, required, memberOf, inTree } = options;
      const in_tree = await uuidIfNamed(placement, inTree);
      const providers = await placement.providers.list({
        name,
        resources: resource,
        required,
        member_of: memberOf,
        in_tree,
      });
      const nameOf = new Map(providers.map((one) => [one.uuid, one.name]));
      print(providers, () => ({
        head: ['name', 'uuid', 'generation', 'parent'],
        rows: providers.map(({ parent_provider_uuid: parent, ...one }) => [
          one.name,
          one.uuid,
          one.generation,
          parent ? (nameOf.get(parent) ?? parent) : '',
        ]),
      }));
    });
  provider
    .command('show')
    .description('show a provider with all that it has')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const picture = await readPicture(placement, await findProvider(placement, which));
      const { parent_provider_uuid: parent, root_provider_uuid: root } = picture;
      const nameOf = await namesOf(
        placement,
        [parent, root].filter((uuid) => typeof uuid === 'string'),
      );
      print(picture, () => showPicture(picture, nameOf));
    });
  addProviderTree(provider);
  addProviderSummaries(provider);
  provider
    .command('create')
    .description('create a provider')
    .argument('<name>', 'a name that no other provider has')
    .option('--uuid <uuid>', 'its UUID; otherwise the server chooses one')
    .option('--parent <provider>', 'the provider that it is a part of')
    .action(async (name: string, options: { readonly uuid?: string; readonly parent?: string }, command: Command) => {
      const { placement, print } = shellOf(command, [['name', 'uuid', 'generation', 'parent']]);
      const { uuid, parent } = options;
      const parent_provider_uuid = await uuidIfNamed(placement, parent);
      const created = await placement.providers.create({ name, uuid, parent_provider_uuid });
      print(created, () =>
        fields([
          ['name', created.name],
          ['uuid', created.uuid],
          ['generation', created.generation],
          ['parent', parent ?? ''],
        ]),
      );
      await warnOfDrainAbove(placement, created);
    });
  const set = provider
    .command('set')
    .description('rename a provider, or move it to another parent')
    .argument(...providerArgument)
    .option('--name <name>', 'the new name')
    .option('--parent <provider>', 'the new parent')
    .option('--no-parent', 'make it a root')
    .addOption(ifMatchOption('provider show'))
    .action(
      async (
        which: string,
        options: IfMatchOption & { readonly name?: string; readonly parent?: string | boolean },
        command: Command,
      ) => {
        const { placement, print } = shellOf(command, []);
        const { name, parent, ifMatch } = options;
        if (name === undefined && (parent === undefined || parent === true)) {
          command.error('error: Nothing is to be changed. Give --name, --parent or --no-parent.');
        }
        const changed = await retryUnlessChanged(options, async () => {
          const found = await findProvider(placement, which);
          const moved =
            typeof parent === 'string' ? await uuidIfNamed(placement, parent) : parent === false ? null : undefined;
          const change = { name: name ?? found.name, parent_provider_uuid: moved };
          return placement.providers.update(found.uuid, change, { ifMatch });
        });
        print(changed, () => `Provider ${changed.name} (${changed.uuid}) is changed.`);
        if (typeof parent === 'string') await warnOfDrainAbove(placement, changed);
      },
    );
  refuseBothParents(set);
  provider
    .command('delete')
    .description('delete a provider that nothing is allocated on and that has no children')
    .argument(...providerArgument)
    .addOption(ifMatchOption('provider show'))
    .action(async (which: string, { ifMatch }: IfMatchOption, command: Command) => {
      const { placement, print } = shellOf(command, []);
      const found = await findProvider(placement, which);
      await placement.providers.delete(found.uuid, { ifMatch });
      print(found, () => `Provider ${found.name} (${found.uuid}) is deleted.`);
    });
}

/** For commander, --parent and --no-parent are one option, and the last of them would win. */
function refuseBothParents(set: Command): void {
  const given = new Set<string>();
  for (const name of ['parent', 'no-parent']) {
    set.on(`option:${name}`, () => {
      if (given.add(name).size === 1) return;
      set.error("error: option '--no-parent' cannot be used with option '--parent <provider>'. Give one of them.");
    });
  }
}

/** Adds `provider summary` to the commands about providers. */
function addProviderSummaries(provider: Command): void {
  provider
    .command('summary')
    .description('list providers with all their data and usages, in a few requests; from 2.2')
    .option('--required <trait>', 'with this trait, or without it: !TRAIT; may be repeated', collect)
    .option('--member-of <aggregate>', 'in this aggregate, or outside of it: !UUID; may be repeated', collect)
    .option('--in-tree <provider>', 'in the same tree as this one')
    .action(async ({ required, memberOf, inTree }: ProviderOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const in_tree = await uuidIfNamed(placement, inTree);
      const query = { required, member_of: memberOf, in_tree };
      const found = await Array.fromAsync(placement.providerSummaries.list(query));
      const summaries = found.toSorted((one, other) => compareNames(one.name, other.name));
      print(summaries, () => ({
        head: ['name', 'uuid', 'total', 'used', 'traits'],
        rows: summaries.map((one) => [
          one.name,
          one.uuid,
          resourcesText(Object.fromEntries(Object.entries(one.inventories).map(([name, { total }]) => [name, total]))),
          resourcesText(one.usages),
          one.traits.join(', '),
        ]),
      }));
    });
}

/** Warns of a provider that was put below a drained one, and is not drained itself: the tree of a drained host accepts no claims. */
async function warnOfDrainAbove(
  placement: Placement,
  { uuid, name, parent_provider_uuid: parent }: Provider,
): Promise<void> {
  if (typeof parent !== 'string') return;
  const drained = await drainedProviders(placement, parent);
  if (!drained.has(parent) || drained.has(uuid)) return;
  printError(
    `Warning: ${name} is below a drained provider, and accepts claims for what it has. Drain it when it has its inventories: ` +
      `placement drain ${shellWord(name)}`,
  );
}
