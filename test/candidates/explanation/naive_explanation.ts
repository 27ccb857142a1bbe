import { candidatesAt, capacityOf, hasTraits } from '../oracle.ts';
import { type ClassName, type Node, rootIndex, type Stock, sharingTrait, type Topology } from '../topology.ts';
import { type Part, requestOfParts } from './parts.ts';

/** The numbers of one condition. */
export type Figures = {
  readonly parameter: string;
  readonly value: string;
  readonly alone: number | null;
  readonly left: number;
  readonly without: number;
  readonly largest: number | null;
};

type Verdict = { readonly parameter: string; readonly value: string; readonly uuid: string; readonly reason: string };

/** More than any inventory of a random topology gives to one claim. */
const mostRequested = 9;

const rootsOf = (topology: Topology): Node[] => topology.filter(({ parent }) => parent === undefined);

/** The trees that fit some conditions: all, where there is no group. */
export function fittingTrees(topology: Topology, parts: readonly Part[]): Node[] {
  const request = requestOfParts(parts);
  const roots = rootsOf(topology);
  if (request.groups.length === 0) return roots;
  return roots.filter((root) => candidatesAt(topology, request, root).size > 0);
}

/** What plain queries say about a topology: by the rules, or by another service. */
export type PlainQueries = {
  /** How many trees fit some conditions. */
  fitting(parts: readonly Part[]): number | Promise<number>;
  fitsSomewhere(parts: readonly Part[]): boolean | Promise<boolean>;
  /**
   * For a trait, an aggregate or in_tree: how many trees have a provider that meets it; of root_required, how many
   * roots.
   */
  meeting(part: Part): number | Promise<number>;
};

/** Plain queries, answered by the letter of the rules. */
export const queriesByTheRules = (topology: Topology): PlainQueries => ({
  fitting: (parts) => fittingTrees(topology, parts).length,
  fitsSomewhere: (parts) => fittingTrees(topology, parts).length > 0,
  meeting: (part) =>
    rootsOf(topology).filter((root) =>
      part.kind === 'root'
        ? meets(topology, root, root, part)
        : treeOf(topology, root).some((node) => hasIt(topology, node, part)),
    ).length,
});

/** Each number of each condition by itself, with conditions taken out of the query. */
export async function naiveFigures(queries: PlainQueries, parts: readonly Part[]): Promise<Figures[]> {
  const figures: Figures[] = [];
  for (const [index, part] of parts.entries()) {
    figures.push({
      parameter: part.parameter,
      value: part.value,
      alone: await aloneCount(queries, part),
      left: await queries.fitting(parts.slice(0, index + 1)),
      without: await queries.fitting(partsWithout(parts, part)),
      largest: part.kind === 'resource' ? await largest(queries, parts, part) : null,
    });
  }
  return figures;
}

function partsWithout(parts: readonly Part[], dropped: Part): readonly Part[] {
  const others = parts.filter((part) => part !== dropped);
  const isLastClass =
    dropped.kind === 'resource' && !others.some(({ kind, suffix }) => kind === 'resource' && suffix === dropped.suffix);
  return isLastClass ? others.filter(({ suffix }) => suffix !== dropped.suffix) : others;
}

function aloneCount(queries: PlainQueries, part: Part): number | null | Promise<number> {
  if (part.kind === 'isolate' || part.kind === 'subtree') return null;
  return part.kind === 'resource' ? queries.fitting([part]) : queries.meeting(part);
}

const treeOf = (topology: Topology, root: Node): Node[] =>
  topology.filter((_, index) => topology[rootIndex(topology, index)] === root);

const rootOf = (topology: Topology, node: Node): Node => topology[rootIndex(topology, topology.indexOf(node))] ?? node;

function hasIt(topology: Topology, node: Node, { kind, value }: Part): boolean {
  const names = value.replace(/^!?(in:)?/, '').split(',');
  if (kind === 'tree') return treeOf(topology, rootOf(topology, node)).some(({ uuid }) => uuid === value);
  if (kind === 'aggregate') return names.some((name) => node.aggregates.includes(name)) !== value.startsWith('!');
  return value.startsWith('!') ? hasTraits(node, [], names) : hasTraits(node, [names], []);
}

async function largest(queries: PlainQueries, parts: readonly Part[], part: Part): Promise<number> {
  const [name] = part.value.split(':');
  for (let amount = mostRequested; amount > 0; amount--) {
    const others = parts.map((other) => (other === part ? { ...part, value: `${name}:${amount}` } : other));
    if (await queries.fitsSomewhere(others)) return amount;
  }
  return 0;
}

/** The providers that may serve a tree: its own, and those that share with it. */
const serving = (topology: Topology, root: Node): Node[] => [
  ...treeOf(topology, root),
  ...topology.filter(
    (node) =>
      rootOf(topology, node) !== root &&
      node.traits.includes(sharingTrait) &&
      treeOf(topology, root).some((own) => own.aggregates.some((each) => node.aggregates.includes(each))),
  ),
];

function stockOf(node: Node, { value }: Part): Stock | undefined {
  return node.stock[value.split(':')[0] as ClassName]; // a class of the topology, or undefined
}

const amountOf = ({ value }: Part): number => Number(value.split(':')[1]);

const freeIn = (stock: Stock | undefined): number =>
  stock === undefined ? 0 : Math.trunc(capacityOf(stock)) - stock.used;

/** Whether a provider that may serve a tree meets a condition by itself. */
function meets(topology: Topology, root: Node, node: Node, part: Part): boolean {
  if (part.kind === 'isolate' || part.kind === 'subtree') return true;
  if (part.kind === 'root') return hasIt(topology, root, part);
  if (part.kind === 'resource') return shortReason(stockOf(node, part), amountOf(part)) === undefined;
  if (part.suffix === '' && part.kind === 'tree') return hasIt(topology, root, part);
  // The root speaks for its tree: in an aggregate that is forbidden it forbids all of it.
  const rootAllows =
    part.suffix !== '' || !part.value.startsWith('!') || part.kind !== 'aggregate' || hasIt(topology, root, part);
  return rootAllows && hasIt(topology, node, part);
}

function shortReason(stock: Stock | undefined, amount: number): string | undefined {
  if (stock === undefined) return 'absent';
  if (stock.used + amount > capacityOf(stock)) return 'capacity';
  if (amount > stock.max_unit) return 'max_unit';
  if (amount < stock.min_unit) return 'min_unit';
  return amount % stock.step_size === 0 ? undefined : 'step_size';
}

/** A tree that does not fit, by the letter of the contract; providers are listed only for conditions on resources. */
export type NaiveTree = {
  readonly name: string;
  readonly shortfall: number;
  readonly unmet: readonly (Omit<Verdict, 'uuid'> & { readonly treeFree: number | undefined })[];
};

/** The trees of one provider that shares. */
export const poolsOf = (topology: Topology): readonly Node[] =>
  rootsOf(topology).filter((root) => treeOf(topology, root).length === 1 && root.traits.includes(sharingTrait));

/** All trees that do not fit, the nearest first. */
export function naiveNearest(topology: Topology, parts: readonly Part[]): NaiveTree[] {
  const fitting = new Set(fittingTrees(topology, parts));
  const trees = rootsOf(topology)
    .filter((root) => !fitting.has(root))
    .map((root): NaiveTree => {
      const providers = serving(topology, root);
      const isMet = (part: Part): boolean => {
        // A group without resources is looked for in any tree, if the one that is named exists.
        const hasResources = parts.some(({ kind, suffix }) => kind === 'resource' && suffix === part.suffix);
        if (part.kind === 'tree' && !hasResources) return topology.some(({ uuid }) => uuid === part.value);
        return providers.some((node) => meets(topology, root, node, part));
      };
      const byThemselves = parts.filter((part) => !isMet(part));
      const enough = parts.filter((part) => fittingTrees(topology, partsWithout(parts, part)).includes(root));
      const isTogether = byThemselves.length === 0;
      const unmet = isTogether ? (enough.length > 0 ? enough : [...parts]) : byThemselves;
      const richest = (part: Part): Stock | undefined =>
        providers
          .flatMap((node) => stockOf(node, part) ?? [])
          .reduce<Stock | undefined>(
            (best, stock) => (best === undefined || freeIn(stock) > freeIn(best) ? stock : best),
            undefined,
          );
      const freeOfAll = (part: Part): number => {
        const free = providers.map((node) => Math.max(0, freeIn(stockOf(node, part))));
        return free.reduce((sum, each) => sum + each, 0);
      };
      const asking = unmet.filter(({ kind }) => kind === 'resource');
      return {
        name: `provider ${topology.indexOf(root)}`,
        shortfall: Math.max(0, ...asking.map((part) => amountOf(part) / Math.max(0, freeIn(richest(part))))),
        unmet: unmet.map((part) => ({
          parameter: part.parameter,
          value: part.value,
          treeFree: part.kind === 'resource' ? freeOfAll(part) : undefined,
          reason: isTogether ? 'together' : reasonOf(part, richest(part)),
        })),
      };
    });
  return trees.sort(
    (a, b) =>
      a.unmet.length - b.unmet.length ||
      (a.shortfall === b.shortfall ? 0 : a.shortfall - b.shortfall) ||
      (a.name < b.name ? -1 : 1),
  );
}

function reasonOf(part: Part, stock: Stock | undefined): string {
  if (part.kind === 'resource') return shortReason(stock, amountOf(part)) ?? '';
  return part.kind === 'root' ? 'trait' : part.kind;
}
