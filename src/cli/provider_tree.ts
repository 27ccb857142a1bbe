import type { Command } from 'commander';
import { unlessUnknown } from '../client/errors.ts';
import { forEach } from '../client/for_each.ts';
import type { Inventory, Placement, Provider, Resources } from '../client/index.ts';
import { capacityOf } from '../client/inventories.ts';
import { compareNames } from '../text/strings.ts';
import { drainStates, openAgain, undrainHint } from './drain_marks.ts';
import { findProvider } from './find_provider.ts';
import { shellOf } from './shell.ts';

type Usage = { readonly inventories: { readonly [resourceClass: string]: Inventory }; readonly usages: Resources };
type Node = Provider & Partial<Usage> & { readonly drained: boolean };

type TreeNode = Node & { readonly children: TreeNode[] };

/** A node, and how it is drawn. The level of a root is 0. */
type Line = { readonly node: TreeNode; readonly level: number; readonly lead: string; readonly branch: string };

/** How many levels are drawn with branches. With more levels the branches would be wider than the rest of the line. */
const drawnLevels = 64;

/** Adds the command `placement provider tree`. */
export function addProviderTree(provider: Command): void {
  provider
    .command('tree')
    .description('draw the tree of a provider, or all trees')
    .argument('[provider]', 'the name or UUID of any provider of the tree')
    .option('-u, --usage', 'also show the usage and capacity of each provider')
    .action(async (which: string | undefined, { usage }: { readonly usage?: true }, command: Command) => {
      const { placement, print, format } = shellOf(command);
      const found = which === undefined ? undefined : await findProvider(placement, which);
      const [providers, drains] = await Promise.all([
        placement.providers.list(found === undefined ? {} : { in_tree: found.uuid }),
        drainStates(placement, found?.uuid),
      ]);
      const used = usage ? await withUsages(placement, providers, found?.uuid) : providers;
      const nodes = used.map((one) => ({ ...one, drained: drains.get(one.uuid) === 'drained' }));
      const trees = treesOf(nodes);
      const lines = linesOf(trees);
      const nameOf = (line: Line) => (format === 'table' ? drawn(line) : line.node.name);
      const firstDrained = lines.find(({ node }) => node.drained)?.node.name;
      const text = () => [
        {
          head: ['provider', 'uuid', ...(usage ? ['used / capacity'] : []), 'drained'],
          rows: lines.map((line) => {
            const { uuid, drained } = line.node;
            return [nameOf(line), uuid, ...(usage ? [usageText(line.node)] : []), drained ? 'drained' : undefined];
          }),
          undrawn: firstDrained === undefined ? ['drained'] : [],
        },
        ...(firstDrained === undefined ? [] : [undrainHint(firstDrained)]),
        ...lines.flatMap(({ node: { uuid, name } }) => (drains.get(uuid) === 'open' ? [`${openAgain(name)}.`] : [])),
      ];
      const isDeep = lines.some(({ level }) => level > drawnLevels);
      print(trees, text, isDeep ? () => compactJson(trees) : undefined);
    });
}

/*
 * None of these functions is recursive, because a tree may be deeper than the stack.
 */

/**
 * Builds trees of providers. A parent that is not in the list is ignored. The parent of a root is ignored, too: other
 * programs can write loops into the database, and then a root has a parent.
 */
function treesOf(providers: readonly Node[]): readonly TreeNode[] {
  const nodes = providers.map((provider): TreeNode => ({ ...provider, children: [] }));
  nodes.sort((a, b) => compareNames(a.name, b.name));
  const byUuid = new Map(nodes.map((node) => [node.uuid, node]));
  const roots: TreeNode[] = [];
  for (const node of nodes) {
    const { uuid, parent_provider_uuid: parent, root_provider_uuid: root } = node;
    const above = parent && root !== uuid ? byUuid.get(parent) : undefined;
    (above?.children ?? roots).push(node);
  }
  return roots;
}

/** The nodes of trees in the order in which they are drawn. */
function linesOf(trees: readonly TreeNode[]): readonly Line[] {
  const lines: Line[] = [];
  const rest = trees.map((node): Line => ({ node, level: 0, lead: '', branch: '' })).reverse();
  for (let line = rest.pop(); line !== undefined; line = rest.pop()) {
    lines.push(line);
    const { node, level, lead, branch } = line;
    const below = level === 0 || level >= drawnLevels ? lead : lead + (branch === lastBranch ? '   ' : '│  ');
    const last = node.children.at(-1);
    for (const child of node.children.toReversed()) {
      rest.push({ node: child, level: level + 1, lead: below, branch: child === last ? lastBranch : '├─ ' });
    }
  }
  return lines;
}

const lastBranch = '└─ ';

/** The name after its branch. A root has no branch, and a node that is too deep has its level instead. */
const drawn = ({ node, level, lead, branch }: Line): string =>
  lead + branch + (level > drawnLevels ? `(level ${level}) ` : '') + node.name;

/**
 * Writes trees as JSON. There is no white space, because in a deep tree it would be most of the text. The function has
 * its own stack, because JSON.stringify is recursive and fails on deep trees.
 */
function compactJson(trees: readonly TreeNode[]): string {
  const written: string[] = [];
  const rest: (TreeNode | string)[] = [];
  const writeList = (nodes: readonly TreeNode[]): void => {
    rest.push(']');
    for (const [index, node] of nodes.toReversed().entries()) {
      if (index > 0) rest.push(',');
      rest.push(node);
    }
    rest.push('[');
  };
  writeList(trees);
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (typeof next === 'string') {
      written.push(next);
      continue;
    }
    const { children, ...fields } = next;
    written.push(JSON.stringify(fields).slice(0, -1), ',"children":');
    rest.push('}');
    writeList(children);
  }
  return written.join('');
}

/** In bulk, or one by one where the service is too old for that, or this user may not. */
async function withUsages(
  placement: Placement,
  providers: readonly Provider[],
  in_tree: string | undefined,
): Promise<readonly (Provider & Partial<Usage>)[]> {
  const whole = await unlessUnknown(Array.fromAsync(placement.providerSummaries.list({ in_tree })));
  if (whole === undefined) return forEach(providers, (one) => withUsage(placement, one));
  const used = new Map(whole.map(({ uuid, inventories, usages }) => [uuid, { inventories, usages }]));
  return providers.map((one) => ({ ...one, ...used.get(one.uuid) }));
}

async function withUsage(placement: Placement, provider: Provider): Promise<Provider & Usage> {
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
