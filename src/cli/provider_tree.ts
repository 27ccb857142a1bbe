import type { Command } from 'commander';
import type { Inventory, Placement, Provider, Resources } from '../client/index.ts';
import { capacityOf } from './amounts.ts';
import { findProvider } from './find_provider.ts';
import { forEach, shellOf } from './shell.ts';
import { table } from './table.ts';

type Usage = { readonly inventories: { readonly [resourceClass: string]: Inventory }; readonly usages: Resources };
type Node = Provider & Partial<Usage>;

type TreeNode = Node & { readonly children: readonly TreeNode[] };

export function addProviderTree(provider: Command): void {
  provider
    .command('tree')
    .description('draw the tree of a provider, or all trees')
    .argument('[provider]', 'the name or UUID of any provider of the tree')
    .option('-u, --usage', 'with what is used of what each one has')
    .action(async (which: string | undefined, { usage }: { readonly usage?: true }, command: Command) => {
      const { placement, print } = shellOf(command);
      const found = which === undefined ? undefined : await findProvider(placement, which);
      const providers = await placement.providers.list(found === undefined ? {} : { in_tree: found.uuid });
      const nodes = usage ? await forEach(providers, (one) => withUsage(placement, one)) : providers;
      const trees = treesOf(nodes);
      print(trees, () => {
        const lines = trees.flatMap((tree) => drawn(tree));
        return usage
          ? table(
              ['provider', 'uuid', 'used / capacity'],
              lines.map(({ text, node }) => [text, node.uuid, usageText(node)]),
            )
          : table(
              ['provider', 'uuid'],
              lines.map(({ text, node }) => [text, node.uuid]),
            );
      });
    });
}

/** Providers as trees. A parent that is not among them is as good as none, and so is that of a root: others can make loops. */
function treesOf(providers: readonly Node[]): readonly TreeNode[] {
  const uuids = new Set(providers.map(({ uuid }) => uuid));
  const byParent = Map.groupBy(providers, ({ uuid, parent_provider_uuid: parent, root_provider_uuid: root }) =>
    parent && uuids.has(parent) && root !== uuid ? parent : undefined,
  );
  const grown = (parent: string | undefined): readonly TreeNode[] =>
    (byParent.get(parent) ?? [])
      .toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
      .map((provider) => ({ ...provider, children: grown(provider.uuid) }));
  return grown(undefined);
}

/** A line for each node, with branches; the root stands without one. */
function drawn(node: TreeNode, lead = '', branch = ''): readonly { readonly text: string; readonly node: TreeNode }[] {
  const below = branch === '' ? '' : lead + (branch === '└─ ' ? '   ' : '│  ');
  return [
    { text: lead + branch + node.name, node },
    ...node.children.flatMap((child, place) => drawn(child, below, place === node.children.length - 1 ? '└─ ' : '├─ ')),
  ];
}

async function withUsage(placement: Placement, provider: Provider): Promise<Node> {
  const [{ inventories }, { usages }] = await Promise.all([
    placement.inventories.list(provider.uuid),
    placement.usages.ofProvider(provider.uuid),
  ]);
  return { ...provider, inventories, usages };
}

const usageText = ({ inventories = {}, usages = {} }: Node): string =>
  Object.entries(inventories)
    .map(([name, inventory]) => `${name} ${usages[name] ?? 0}/${capacityOf(inventory)}`)
    .join(', ');
