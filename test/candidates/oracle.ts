import type { CandidateRequest, RequestGroup } from '../../src/search/request.ts';
import { type Node, rootIndex, sharingTrait, type Topology } from './topology.ts';

/** Which provider gives each class of a group; a group without resources has its provider under the empty class. */
type Assignment = ReadonlyMap<string, Node>;

/**
 * All candidates by the rules of the API: every assignment of providers to groups and classes, at every anchor, is
 * tried and judged by itself. Each is written as keyOf writes it; two that are written the same, mappings included, are
 * one.
 */
export function allCandidates(topology: Topology, request: CandidateRequest): Set<string> {
  const roots = topology.filter(({ parent }) => parent === undefined);
  return new Set(roots.flatMap((anchor) => [...candidatesAt(topology, request, anchor)]));
}

/** The candidates of one anchor, before equal ones of several anchors are merged. */
export function candidatesAt(topology: Topology, request: CandidateRequest, anchor: Node): Set<string> {
  const found = new Set<string>();
  const required = request.rootTraits.required.map((name) => [name]);
  if (!hasTraits(anchor, required, request.rootTraits.forbidden)) return found;
  const perGroup = request.groups.map((group) => assignmentsOf(topology, anchor, group));
  for (const assignments of product(perGroup)) {
    if (isCandidate(topology, request, assignments))
      found.add(keyOf(amounts(request, assignments), mappings(request, assignments)));
  }
  return found;
}

/** A candidate as one comparable text: amounts by provider and class, and the providers of each group. */
export const keyOf = (amounts: ReadonlyMap<string, number>, mappings: ReadonlyMap<string, readonly string[]>): string =>
  JSON.stringify([
    [...amounts].sort(),
    [...mappings].map(([suffix, uuids]) => [suffix, [...new Set(uuids)].sort()]).sort(),
  ]);

function assignmentsOf(topology: Topology, anchor: Node, group: RequestGroup): Assignment[] {
  const rootOf = (node: Node): Node => topology[rootIndex(topology, topology.indexOf(node))] ?? node;
  const treeOf = (root: Node): Node[] => topology.filter((node) => rootOf(node) === root);
  const isOwn = (node: Node): boolean => rootOf(node) === anchor;
  const sharesWithAnchor = (node: Node): boolean =>
    node.traits.includes(sharingTrait) &&
    treeOf(anchor).some((member) => member.aggregates.some((aggregate) => node.aggregates.includes(aggregate)));
  const isMember = (node: Node): boolean =>
    group.aggregates.required.every((anyOf) => anyOf.some((aggregate) => node.aggregates.includes(aggregate)));
  const isOutcast = (node: Node): boolean => group.aggregates.forbidden.some((each) => node.aggregates.includes(each));
  const isInTree = (node: Node): boolean =>
    group.inTree === undefined || treeOf(rootOf(node)).some(({ uuid }) => group.inTree?.includes(uuid));
  const treeExists = group.inTree === undefined || topology.some(({ uuid }) => group.inTree?.includes(uuid));
  const { required, forbidden } = group.traits;
  if (!treeExists) return [];

  const wanted = [...group.resources];
  if (group.suffix !== '') {
    const asksForSomething = wanted.length > 0 || required.length > 0 || group.aggregates.required.length > 0;
    return topology
      .filter((node) => asksForSomething && (isOwn(node) || sharesWithAnchor(node)))
      .filter((node) => hasTraits(node, required, forbidden) && isMember(node) && !isOutcast(node))
      .filter((node) => wanted.length === 0 || isInTree(node))
      .filter((node) => wanted.every(([name, amount]) => fits(node, name, amount)))
      .map((node) => new Map(wanted.length === 0 ? [['', node]] : wanted.map(([name]) => [name, node])));
  }
  const isAllowed = (node: Node): boolean => {
    if (isOutcast(node) || isOutcast(anchor) || !hasTraits(node, [], forbidden) || !isInTree(node)) return false;
    if (isOwn(node)) return isMember(node) || isMember(anchor);
    return sharesWithAnchor(node) && isMember(node) && group.inTree === undefined;
  };
  const perClass = wanted.map(([name, amount]) =>
    topology.filter((node) => fits(node, name, amount) && isAllowed(node)).map((node): [string, Node] => [name, node]),
  );
  return product(perClass)
    .filter((pairs) => {
      const together = pairs.flatMap(([, { traits }]): readonly string[] => traits);
      return required.every((anyOf) => anyOf.some((name) => together.includes(name)));
    })
    .map((pairs) => new Map(pairs));
}

function isCandidate(topology: Topology, request: CandidateRequest, assignments: readonly Assignment[]): boolean {
  const { groups } = request;
  const chosen = assignments.map((assignment) => new Set(assignment.values()));
  const granular = chosen.filter((_, index) => groups[index]?.suffix !== '').flatMap((nodes) => [...nodes]);
  if (request.isolate && new Set(granular).size < granular.length) return false;

  const lineOf = (node: Node): Node[] => {
    const parent = node.parent === undefined ? undefined : topology[node.parent];
    return parent === undefined ? [node] : [node, ...lineOf(parent)];
  };
  for (const suffixes of request.sameSubtrees) {
    const nodes = chosen.flatMap((each, index) => (suffixes.has(groups[index]?.suffix ?? '') ? [...each] : []));
    if (!nodes.some((top) => nodes.every((node) => lineOf(node).includes(top)))) return false;
  }

  for (const [key, amount] of amounts(request, assignments)) {
    const [uuid, name = ''] = key.split(' ');
    const stock = topology.find((node) => node.uuid === uuid)?.stock[name as keyof Node['stock']]; // else undefined
    if (stock === undefined || stock.used + amount > capacityOf(stock) || amount > stock.max_unit) return false;
  }
  if (request.nested) return true;
  const used = new Set(assignments.flatMap((assignment) => [...assignment.values()]));
  return new Set([...used].map((node) => rootIndex(topology, topology.indexOf(node)))).size === used.size;
}

/** Whether a provider has a trait or aggregate of each required list, and none that is forbidden. */
export const hasTraits = (
  node: Node,
  required: readonly (readonly string[])[],
  forbidden: readonly string[],
): boolean => {
  const has = (name: string) => node.traits.some((each) => each === name);
  return required.every((anyOf) => anyOf.some(has)) && !forbidden.some(has);
};

/** The capacity of an inventory before rounding. */
export const capacityOf = (stock: { total: number; reserved: number; allocation_ratio: number }): number =>
  (stock.total - stock.reserved) * stock.allocation_ratio;

function fits(node: Node, name: string, amount: number): boolean {
  const stock = node.stock[name as keyof Node['stock']]; // undefined for any other name
  if (stock === undefined) return false;
  const { used, min_unit, max_unit, step_size } = stock;
  return used + amount <= capacityOf(stock) && min_unit <= amount && amount <= max_unit && amount % step_size === 0;
}

function amounts({ groups }: CandidateRequest, assignments: readonly Assignment[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [index, group] of groups.entries()) {
    for (const [name, amount] of group.resources) {
      const key = `${assignments[index]?.get(name)?.uuid} ${name}`;
      sums.set(key, (sums.get(key) ?? 0) + amount);
    }
  }
  return sums;
}

const mappings = ({ groups }: CandidateRequest, assignments: readonly Assignment[]): Map<string, string[]> =>
  new Map(
    groups.map(({ suffix }, index) => [suffix, [...(assignments[index]?.values() ?? [])].map(({ uuid }) => uuid)]),
  );

const product = <Item>(lists: readonly (readonly Item[])[]): Item[][] =>
  lists.reduce<Item[][]>((rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]]);
