import type { Changes } from './changes.ts';
import type { Loaded } from './load.ts';
import { type Names, namesOf } from './names.ts';
import { Postings } from './postings.ts';
import type { Inventory, Provider } from './provider.ts';
import type { AggregateRow, InventoryRow, ProviderRow, TraitRow } from './rows.ts';
import { linkTrees } from './trees.ts';

/** All providers of the deployment, in memory, as one snapshot of the database saw them. */
export type Fleet = {
  readonly byId: ReadonlyMap<number, Provider>;
  readonly byUuid: ReadonlyMap<string, Provider>;
  readonly byName: ReadonlyMap<string, Provider>;
  /** Every root once, in no particular but steady order. */
  readonly roots: readonly Provider[];
  /** Who has an inventory of a class, by its id. */
  readonly withClass: Postings<number>;
  /** Who has a trait, by its id. */
  readonly withTrait: Postings<number>;
  /** Who is in an aggregate, by its UUID as it was spelt. */
  readonly inAggregate: Postings<string>;
  readonly traits: Names;
  readonly classes: Names;
};

/** A fleet that takes in what changed. Both functions run in one go, so that no reader sees half a change. */
export type LivingFleet = { readonly fleet: Fleet; apply(changes: Changes): void };

/** Builds the fleet from a full load. */
export function createFleet(loaded: Loaded): LivingFleet {
  const byId = new Map<number, Provider>();
  const byUuid = new Map<string, Provider>();
  const byName = new Map<string, Provider>();
  const roots: Provider[] = [];
  const rootPlaces = new Map<Provider, number>();
  const fleet = {
    byId,
    byUuid,
    byName,
    roots,
    withClass: new Postings<number>(),
    withTrait: new Postings<number>(),
    inAggregate: new Postings<string>(),
    traits: namesOf(loaded.traitNames),
    classes: namesOf(loaded.classNames),
  };

  const setRoot = (provider: Provider, isRoot: boolean): void => {
    const place = rootPlaces.get(provider);
    if (isRoot && place === undefined) rootPlaces.set(provider, roots.push(provider) - 1);
    if (isRoot || place === undefined) return;
    // The last root takes the place of the one that goes, so that removing costs the same in any fleet.
    const last = roots.pop();
    rootPlaces.delete(provider);
    if (last === undefined || last === provider) return;
    roots[place] = last;
    rootPlaces.set(last, place);
  };

  const remove = (provider: Provider): void => {
    byId.delete(provider.id);
    setRoot(provider, false);
    setParts(provider, [], [], []);
  };

  const setParts = (
    provider: Provider,
    inventories: readonly Inventory[],
    traitIds: readonly number[],
    aggregates: readonly string[],
  ): void => {
    fleet.withClass.move(provider, provider.inventories.map(classOf), inventories.map(classOf));
    fleet.withTrait.move(provider, provider.traitIds, traitIds);
    fleet.inAggregate.move(provider, provider.aggregates, aggregates);
    provider.inventories = inventories;
    provider.traitIds = traitIds;
    provider.aggregates = aggregates;
    provider.root.treeSummary = undefined;
  };

  /** Takes in whole providers: new ones, changed ones, and, of the ids, those that are gone. */
  const applyWhole = (
    ids: readonly number[],
    rows: readonly ProviderRow[],
    inventoryRows: readonly InventoryRow[],
    traitRows: readonly TraitRow[],
    aggregateRows: readonly AggregateRow[],
  ): void => {
    const relinked = new Set<Provider>();
    const gone = new Set(ids);
    // A name may pass from one provider to another within one refresh: all old ones go before any new one comes.
    for (const id of ids) {
      const old = byId.get(id);
      if (old === undefined) continue;
      byUuid.delete(old.uuid);
      if (byName.get(old.name) === old) byName.delete(old.name);
    }
    for (const row of rows) {
      gone.delete(row.id);
      const known = byId.get(row.id);
      const provider = known ?? blankProvider(row.id);
      if (known === undefined) byId.set(row.id, provider);
      if (known === undefined || (known.parent?.id ?? null) !== row.parent) relinked.add(provider);
      provider.uuid = row.uuid;
      provider.name = row.name ?? '';
      provider.generation = row.generation;
      provider.createdAtMs = row.created ?? undefined;
      provider.updatedAtMs = row.updated ?? undefined;
      byUuid.set(provider.uuid, provider);
      if (row.name !== null) byName.set(row.name, provider);
    }
    const goneProviders = [...gone].flatMap((id) => byId.get(id) ?? []);
    for (const provider of goneProviders) remove(provider);
    linkTrees(byId, rows, relinked, goneProviders, setRoot);

    const inventories = groupBy(inventoryRows);
    const traits = groupBy(traitRows);
    const aggregates = groupBy(aggregateRows);
    for (const { id } of rows) {
      const provider = byId.get(id);
      if (provider === undefined) continue;
      setParts(
        provider,
        (inventories.get(id) ?? []).map(inventoryFrom).sort((a, b) => a.classId - b.classId),
        (traits.get(id) ?? []).map((row) => row.trait).sort((a, b) => a - b),
        (aggregates.get(id) ?? []).map((row) => row.aggregate),
      );
    }
  };

  applyWhole([], loaded.providers, loaded.inventories, loaded.traits, loaded.aggregates);

  return {
    fleet,
    apply: (changes) => {
      if (changes.traitNames !== null) fleet.traits = namesOf(changes.traitNames);
      if (changes.classNames !== null) fleet.classes = namesOf(changes.classNames);
      if (changes.traitNames !== null || changes.classNames !== null) {
        for (const root of roots) root.treeSummary = undefined;
      }
      if (changes.whole !== null) {
        applyWhole(
          changes.whole,
          changes.providers ?? [],
          changes.inventories ?? [],
          changes.traits ?? [],
          changes.aggregates ?? [],
        );
      }
      for (const { provider: id, classes, deltas } of changes.moved ?? []) {
        const provider = byId.get(id);
        if (provider === undefined) continue;
        for (const inventory of provider.inventories) {
          const place = classes.indexOf(inventory.classId);
          if (place !== -1) inventory.used += deltas[place] ?? 0;
        }
        provider.root.treeSummary = undefined;
      }
      for (const { id, generation, created, updated } of changes.touched ?? []) {
        const provider = byId.get(id);
        if (provider === undefined) continue;
        provider.generation = generation;
        provider.createdAtMs = created ?? undefined;
        provider.updatedAtMs = updated ?? undefined;
      }
    },
  };
}

const classOf = (inventory: Inventory): number => inventory.classId;

function inventoryFrom(row: InventoryRow): Inventory {
  return {
    classId: row.class,
    total: row.total,
    reserved: row.reserved,
    minUnit: row.min_unit,
    maxUnit: row.max_unit,
    stepSize: row.step_size,
    allocationRatio: row.allocation_ratio,
    used: row.used,
    modifiedAtMs: row.modified ?? 0,
  };
}

function groupBy<Row extends { readonly provider: number }>(rows: readonly Row[]): Map<number, Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.provider);
    if (group === undefined) groups.set(row.provider, [row]);
    else group.push(row);
  }
  return groups;
}

function blankProvider(id: number): Provider {
  const provider: Omit<Provider, 'root'> = {
    id,
    uuid: '',
    name: '',
    generation: 0,
    createdAtMs: undefined,
    updatedAtMs: undefined,
    parent: undefined,
    children: none,
    tree: none,
    inventories: none,
    traitIds: none,
    aggregates: none,
    treeSummary: undefined,
  };
  return Object.assign(provider, { root: provider as Provider }); // its own root until linkTrees finds a parent
}

const none: readonly never[] = [];
