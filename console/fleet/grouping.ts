import { compareNames } from '../../src/text/strings.ts';
import { shortUuid, visible } from '../text.ts';
import { type Amounts, sumOf, type Tree } from './trees.ts';

/** Some trees under one heading. */
export type Group = {
  readonly key: string;
  readonly label: string;
  readonly trees: readonly Tree[];
  readonly sums: ReadonlyMap<string, Amounts>;
};

/**
 * Puts trees into groups: `` all in one; `aggregate` one for each aggregate, so that a tree in two aggregates is shown in both;
 * `trait:HW_X` trees with and trees without a trait; `trait:CUSTOM_RACK_*` one for each such trait. If there are hosts, trees that
 * only share are a separate group, the last one.
 */
export function groupsOf(trees: readonly Tree[], by: string): readonly Group[] {
  const hosts = trees.filter(({ isPool }) => !isPool);
  if (hosts.length === 0 || hosts.length === trees.length) return groupsOfHosts(trees, by);
  const pools = group(
    poolsKey,
    'shared pools',
    trees.filter(({ isPool }) => isPool),
  );
  const groups = groupsOfHosts(hosts, by);
  return [...(groups.length === 1 && groups[0]?.key === '' ? [group('hosts', 'hosts', hosts)] : groups), pools];
}

const poolsKey = 'pools';

const group = (key: string, label: string, members: readonly Tree[]): Group => ({
  key,
  label,
  trees: members,
  sums: sumOf(members.map(({ amounts }) => amounts)),
});

/** A group for each aggregate, also with the pools that share with it; the key is its UUID. */
export const aggregatesOf = (trees: readonly Tree[]): readonly Group[] =>
  byAggregate(trees).filter(({ key }) => key !== '');

function byAggregate(trees: readonly Tree[]): readonly Group[] {
  const found = byKeys(
    trees,
    (tree) => tree.aggregates,
    'in no aggregate',
    (key, members) => commonStart(members.filter(({ isPool }) => !isPool)) || shortUuid(key),
  );
  const uses = Map.groupBy(found, ([, label]) => label);
  return found.map(([key, label, members]) => {
    const isAlone = uses.get(label)?.length === 1;
    return group(key, isAlone ? label : `${label} · ${shortUuid(key)}`, members);
  });
}

function groupsOfHosts(trees: readonly Tree[], by: string): readonly Group[] {
  if (by === 'aggregate') return byAggregate(trees);
  if (by.startsWith('trait:')) {
    const trait = by.slice('trait:'.length);
    if (trait.endsWith('*')) {
      const start = trait.slice(0, -1);
      const keys = (tree: Tree) => [...tree.traits].filter((name) => name.startsWith(start));
      return byKeys(trees, keys, `no ${trait}`, (key) => key.slice(start.length) || key).map(([key, label, members]) =>
        group(key, label, members),
      );
    }
    const { true: has = [], false: lacks = [] } = Object.groupBy(trees, (tree) => `${tree.traits.has(trait)}`);
    return [group('with', trait, has), group('without', `without ${trait}`, lacks)].filter(
      (each) => each.trees.length > 0,
    );
  }
  return trees.length === 0 ? [] : [group('', 'all', trees)];
}

function byKeys(
  trees: readonly Tree[],
  keysOf: (tree: Tree) => Iterable<string>,
  labelOfNone: string,
  labelOf: (key: string, members: readonly Tree[]) => string,
): readonly (readonly [key: string, label: string, members: readonly Tree[]])[] {
  const members = new Map<string, Tree[]>();
  const none: Tree[] = [];
  for (const tree of trees) {
    let isIn = false;
    for (const key of keysOf(tree)) {
      isIn = true;
      const list = members.get(key);
      if (list === undefined) members.set(key, [tree]);
      else list.push(tree);
    }
    if (!isIn) none.push(tree);
  }
  const groups = [...members].map(([key, list]) => [key, labelOf(key, list), list] as const);
  groups.sort(([, a], [, b]) => compareNames(a, b));
  return none.length === 0 ? groups : [...groups, ['', labelOfNone, none]];
}

/**
 * A name for an aggregate, which has none: the common beginning of most names of its members, up to a separator, such
 * as `rack07`.
 */
function commonStart(members: readonly Tree[]): string {
  const counts = new Map<string, number>();
  for (const { name } of members) {
    const [start = ''] = name.split(/[-_.:/]/, 1);
    counts.set(start, (counts.get(start) ?? 0) + 1);
  }
  const [start, count] = [...counts].reduce((most, each) => (each[1] > most[1] ? each : most), ['', 0]);
  return start !== '' && counts.size < members.length && count >= 0.8 * members.length ? visible(start) : '';
}

/**
 * The traits by which trees can be grouped: single traits that only some trees have, and families such as
 * CUSTOM_RACK_*.
 */
export function groupingTraits(trees: readonly Tree[]): {
  readonly families: readonly string[];
  readonly traits: readonly string[];
} {
  const counts = new Map<string, number>();
  for (const { traits } of trees) for (const trait of traits) counts.set(trait, (counts.get(trait) ?? 0) + 1);
  const stems = new Map<string, number>();
  for (const trait of counts.keys()) {
    if (!trait.startsWith('CUSTOM_')) continue;
    const stem = trait.slice(0, trait.lastIndexOf('_') + 1);
    if (stem !== 'CUSTOM_') stems.set(stem, (stems.get(stem) ?? 0) + 1);
  }
  const families = [...stems].filter(([, count]) => count > 1).map(([stem]) => `${stem}*`);
  return {
    families: families.sort(),
    traits: [...counts.keys()].filter((trait) => (counts.get(trait) ?? 0) < trees.length).sort(),
  };
}
