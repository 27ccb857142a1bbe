import { drainOf } from '../../src/cli/drain_marks.ts';
import { capacityOf } from '../../src/client/inventories.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { sharingTrait } from '../../src/placement/inventory.ts';
import { compareNames } from '../../src/text/strings.ts';

/** Amounts of one class. */
export type Amounts = {
  readonly used: number;
  readonly capacity: number;
  readonly total: number;
  readonly reserved: number;
};

/** A root provider with everything below it: one cell of the grid. */
export type Tree = {
  readonly uuid: string;
  readonly name: string;
  /** By class, summed up over the tree. */
  readonly amounts: ReadonlyMap<string, Amounts>;
  readonly traits: ReadonlySet<string>;
  readonly aggregates: ReadonlySet<string>;
  readonly providers: number;
  /** Whether the tree is one provider that shares, such as a pool of storage or of licences, and no host. */
  readonly isPool: boolean;
  /** Whether all its providers are drained, or some of them: then it may take claims. */
  readonly drain: 'drained' | 'part' | undefined;
  /** The names and UUIDs of all its providers, which a search matches, in lower case. */
  readonly searched: string;
};

const none: Amounts = { used: 0, capacity: 0, total: 0, reserved: 0 };

/** The sum of amounts. */
const added = (a: Amounts, b: Amounts): Amounts => ({
  used: a.used + b.used,
  capacity: a.capacity + b.capacity,
  total: a.total + b.total,
  reserved: a.reserved + b.reserved,
});

/** The order in which classes are shown: the usual ones first. */
export const classOrder = (a: string, b: string): number => rankOf(a) - rankOf(b) || (a < b ? -1 : a > b ? 1 : 0);

/** The amounts of a provider, by class. */
export function* amountsOf({ inventories, usages }: WholeProvider): Generator<readonly [string, Amounts]> {
  for (const [name, inventory] of Object.entries(inventories)) {
    const { total, reserved } = inventory;
    yield [name, { used: usages[name] ?? 0, capacity: capacityOf(inventory), total, reserved }];
  }
}

/** Sums of amounts by class, in the order in which classes are shown. */
export function sumOf(all: Iterable<Iterable<readonly [string, Amounts]>>): ReadonlyMap<string, Amounts> {
  const sums = new Map<string, Amounts>();
  for (const amounts of all) {
    for (const [name, amount] of amounts) sums.set(name, added(sums.get(name) ?? none, amount));
  }
  return new Map([...sums].sort(([a], [b]) => classOrder(a, b)));
}

const first = ['VCPU', 'PCPU', 'PGPU', 'VGPU', 'MEMORY_MB', 'DISK_GB'];
const rankOf = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);

/**
 * The trees of all providers, sorted by name. A tree whose providers are unchanged stays the same object. The trees are
 * sorted again only after a tree was added or renamed.
 */
export function openTrees(): (all: { readonly providers: ReadonlyMap<string, WholeProvider> }) => readonly Tree[] {
  let known = new Map<string, { readonly members: readonly WholeProvider[]; readonly tree: Tree }>();
  let sorted: readonly Tree[] = [];
  return ({ providers }) => {
    const byRoot = Map.groupBy(providers.values(), ({ root_provider_uuid }) => root_provider_uuid);
    const now: typeof known = new Map();
    for (const [root, members] of byRoot) {
      const before = known.get(root);
      const isSame =
        before?.members.length === members.length && members.every((each, index) => each === before.members[index]);
      now.set(root, isSame && before ? before : { members, tree: treeOf(root, members) });
    }
    known = now;
    const inOldOrder = sorted.flatMap(({ uuid, name }) => {
      const tree = now.get(uuid)?.tree;
      return tree?.name === name ? [tree] : [];
    });
    sorted =
      inOldOrder.length === now.size
        ? inOldOrder
        : [...now.values()].map(({ tree }) => tree).sort((a, b) => compareNames(a.name, b.name));
    return sorted;
  };
}

/** Whether the providers of a tree are drained. */
export function drainOfTree(members: readonly WholeProvider[]): Tree['drain'] {
  const drains = members.map(drainOf);
  if (drains.every((each) => each === undefined)) return undefined;
  return drains.every((each) => each === 'drained') ? 'drained' : 'part';
}

function treeOf(uuid: string, members: readonly WholeProvider[]): Tree {
  const name = members.find((member) => member.uuid === uuid)?.name ?? uuid;
  return {
    uuid,
    name,
    amounts: sumOf(members.map(amountsOf)),
    traits: new Set(members.flatMap(({ traits }) => traits)),
    aggregates: new Set(members.flatMap(({ aggregates }) => aggregates)),
    providers: members.length,
    isPool: members.length === 1 && members.every(({ traits }) => traits.includes(sharingTrait)),
    drain: drainOfTree(members),
    // The root comes first, so that its name is compared first.
    searched: [{ name, uuid }, ...members.filter((member) => member.uuid !== uuid)]
      .map((member) => `${member.name} ${member.uuid}`)
      .join('\n')
      .toLowerCase(),
  };
}

/**
 * The class with which the fleet opens: the one that most hosts have. Of several such classes the one of which most is
 * used. Pools count only where there are no hosts; without any class it is VCPU.
 */
export function commonClass(trees: readonly Tree[]): string {
  const hosts = trees.filter(({ isPool }) => !isPool);
  const shown = hosts.length === 0 ? trees : hosts;
  const counts = new Map<string, number>();
  for (const { amounts } of shown) for (const name of amounts.keys()) counts.set(name, (counts.get(name) ?? 0) + 1);
  const sums = sumOf(shown.map(({ amounts }) => amounts));
  const part = (name: string) => fullness(sums.get(name), 'capacity') || 0;
  const [[most] = ['VCPU']] = [...counts].sort(
    ([a, x], [b, y]) => y - x || rankOf(a) - rankOf(b) || part(b) - part(a) || (a < b ? -1 : 1),
  );
  return most;
}

/**
 * The meaning of a colour: used of capacity, or used and reserved of the total, which is above 1 if it is
 * overcommitted.
 */
export type Measure = 'capacity' | 'total';

/** How full something is: 1 is full. NaN: it has nothing of the class. */
export function fullness(amounts: Amounts | undefined, measure: Measure): number {
  if (amounts === undefined) return Number.NaN;
  const { used, capacity, total, reserved } = amounts;
  const [part, whole] = measure === 'capacity' ? [used, capacity] : [used + reserved, total];
  if (whole > 0) return part / whole;
  return part > 0 ? Number.POSITIVE_INFINITY : total > 0 ? 1 : Number.NaN;
}
