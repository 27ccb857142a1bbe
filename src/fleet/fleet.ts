import type { Changes } from './changes.ts';
import { type Names, namesOf } from './names.ts';
import { partsReader } from './parts.ts';
import { createPlaces, nowhere } from './places.ts';
import { Postings } from './postings.ts';
import { blankProvider, type Inventory, type Provider } from './provider.ts';
import type { FleetRows, NameRows, ProviderRow } from './rows.ts';
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

/** A fleet that is not complete yet: it takes in all providers, in parts, and is linked to trees when it has them all. */
export type GrowingFleet = { add(rows: FleetRows): void; finish(): LivingFleet };

/** Begins a fleet that has no provider yet. */
export function buildFleet({ traitNames, classNames }: NameRows): GrowingFleet {
  const byId = new Map<number, Provider>();
  const byUuid = new Map<string, Provider>();
  const byName = new Map<string, Provider>();
  const roots: Provider[] = [];
  const places = createPlaces();
  const fleet = {
    byId,
    byUuid,
    byName,
    roots,
    withClass: new Postings<number>(places),
    withTrait: new Postings<number>(places),
    inAggregate: new Postings<string>(places),
    traits: namesOf(traitNames),
    classes: namesOf(classNames),
  };

  const setRoot = (provider: Provider, isRoot: boolean): void => {
    const place = provider.rootPlace;
    if (isRoot === (place !== nowhere)) return;
    if (isRoot) {
      provider.rootPlace = roots.push(provider) - 1;
      return;
    }
    // The last root takes the place of the one that goes, so that removing costs the same in any fleet.
    provider.rootPlace = nowhere;
    const last = roots.pop();
    if (last === undefined || last === provider) return;
    roots[place] = last;
    last.rootPlace = place;
  };

  const remove = (provider: Provider): void => {
    byId.delete(provider.id);
    setRoot(provider, false);
    setParts(provider, none, none, none);
    places.free(provider);
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
    provider.root.findings = undefined;
  };

  /** Takes in the rows of providers. @returns those that are to be linked, since their parent is another than it was. */
  const takeProviders = (rows: readonly ProviderRow[]): Set<Provider> => {
    const relinked = new Set<Provider>();
    for (const row of rows) {
      const known = byId.get(row.id);
      const provider = known ?? blankProvider(row.id);
      if (known === undefined) {
        byId.set(row.id, provider);
        places.take(provider);
        if (row.parent === null) setRoot(provider, true);
      }
      if ((provider.parent?.id ?? null) !== row.parent) relinked.add(provider);
      provider.uuid = row.uuid;
      provider.name = row.name ?? '';
      provider.generation = row.generation;
      provider.createdAtSeconds = row.created ?? undefined;
      provider.updatedAtSeconds = row.updated ?? undefined;
      byUuid.set(provider.uuid, provider);
      if (row.name !== null) byName.set(row.name, provider);
    }
    return relinked;
  };

  const partsOf = partsReader();
  const takeParts = (rows: FleetRows): void => {
    for (const { id, inventories, traitIds, aggregates } of partsOf(rows)) {
      const provider = byId.get(id);
      if (provider !== undefined) setParts(provider, inventories, traitIds, aggregates);
    }
  };

  /** Takes in whole providers: new ones, changed ones, and, of the ids, those that are gone. */
  const takeWhole = (ids: readonly number[], rows: FleetRows): void => {
    const gone = new Set(ids);
    // A name may pass from one provider to another within one refresh: all old ones go before any new one comes.
    for (const id of ids) {
      const old = byId.get(id);
      if (old === undefined) continue;
      byUuid.delete(old.uuid);
      if (byName.get(old.name) === old) byName.delete(old.name);
    }
    const relinked = takeProviders(rows.providers);
    for (const { id } of rows.providers) gone.delete(id);
    const goneProviders = [...gone].flatMap((id) => byId.get(id) ?? []);
    for (const provider of goneProviders) remove(provider);
    linkTrees(byId, rows.providers, relinked, goneProviders, setRoot);
    takeParts(rows);
  };

  const apply = (changes: Changes): void => {
    if (changes.traitNames !== null) fleet.traits = namesOf(changes.traitNames);
    if (changes.classNames !== null) fleet.classes = namesOf(changes.classNames);
    if (changes.traitNames !== null || changes.classNames !== null) {
      for (const root of roots) root.findings = undefined;
    }
    if (changes.whole !== null) {
      const { providers, inventories, traits, aggregates } = changes;
      takeWhole(changes.whole, {
        providers: providers ?? none,
        inventories: inventories ?? none,
        traits: traits ?? none,
        aggregates: aggregates ?? none,
      });
    }
    for (const { provider: id, classes, deltas } of changes.moved ?? none) {
      const provider = byId.get(id);
      if (provider === undefined) continue;
      for (const inventory of provider.inventories) {
        const place = classes.indexOf(inventory.classId);
        if (place !== -1) inventory.used += deltas[place] ?? 0;
      }
      provider.root.findings = undefined;
    }
    for (const { id, generation, created, updated } of changes.touched ?? none) {
      const provider = byId.get(id);
      if (provider === undefined) continue;
      provider.generation = generation;
      provider.createdAtSeconds = created ?? undefined;
      provider.updatedAtSeconds = updated ?? undefined;
    }
  };

  // A parent may come behind its children.
  const unlinked: ProviderRow[] = [];
  return {
    add: (rows) => {
      takeProviders(rows.providers);
      takeParts(rows);
      for (const row of rows.providers) if (row.parent !== null) unlinked.push(row);
    },
    finish: () => {
      linkTrees(byId, unlinked, new Set(unlinked.flatMap(({ id }) => byId.get(id) ?? [])), [], setRoot);
      return { fleet, apply };
    },
  };
}

const classOf = (inventory: Inventory): number => inventory.classId;

const none: readonly never[] = [];
