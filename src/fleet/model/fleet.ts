import type { Changes } from '../../../db/fleet/read_changes.ts';
import {
  type FleetPage,
  type FleetRows,
  type LimitRows,
  type NameRows,
  type ProviderRow,
  pageOf,
} from '../../../db/fleet/rows.ts';
import { noLimits, type ProjectLimits } from '../../placement/limits.ts';
import { remembering } from '../../text/cache.ts';
import { createHeldSnapshots, type HeldSnapshot, type HeldSnapshots } from './held_snapshots.ts';
import { limitsOf } from './limits.ts';
import { type Names, namesOf } from './names.ts';
import { type ProviderParts, partsReader } from './parts.ts';
import { Postings } from './postings.ts';
import {
  blankProvider,
  classOf,
  createProvidersById,
  createSlots,
  type Inventory,
  nowhere,
  type Provider,
  type ProvidersById,
  setUuid,
} from './provider.ts';
import { createTreeOrders, type TreeOrders } from './tree_order.ts';
import { createTreeRoom, type TreeRoom } from './tree_room.ts';
import { linkTrees, replaceTree } from './trees.ts';
import { createUuidOrder, type UuidOrder } from './uuid_order.ts';

/** All providers of the deployment, in memory, as one snapshot of the database shows them. */
export type Fleet = {
  /**
   * The run of the server that the fleet was read from (db/engine/server_state.ts). On another run the same ids and
   * generations may belong to other content.
   */
  readonly serverRun: string;
  readonly byId: ProvidersById;
  readonly byUuid: ReadonlyMap<string, Provider>;
  readonly byName: ReadonlyMap<string, Provider>;
  readonly inUuidOrder: UuidOrder;
  /** Every root once, in an order that is arbitrary but stable. */
  readonly roots: readonly Provider[];
  /** The providers with an inventory of a class, by the id of the class. */
  readonly withClass: Postings<number>;
  /** The providers with a trait, by the id of the trait. */
  readonly withTrait: Postings<number>;
  /** The providers in an aggregate, by the UUID of the aggregate as it was spelt. */
  readonly inAggregate: Postings<string>;
  readonly treeOrders: TreeOrders;
  readonly treeRoom: TreeRoom;
  /**
   * The number of a key. Equal keys have the same number, unless very many other keys were numbered between them. The caches of trees use
   * these numbers as keys.
   */
  readonly numberOf: (key: string) => number;
  /** The roots of the trees in which usage beyond the capacity is tolerated while a claim is judged (overlay.ts). */
  readonly tolerating: Set<Provider>;
  readonly traits: Names;
  readonly classes: Names;
  /** The limits of projects, by which claims are judged as well. */
  readonly limits: ProjectLimits;
};

/** Changes from the database that are applied to a fleet. A list that is absent or null is empty. */
export type AppliedChanges = {
  readonly [Part in 'moved' | 'touched' | 'whole' | keyof FleetRows | keyof ChangedNames]?: Changes[Part];
};

/** Names and limits; null or absent where they did not change. */
type ChangedNames = { readonly [Part in 'traitNames' | 'classNames' | 'limits']?: Changes[Part] };

/** A fleet that is refreshed. Each change is applied in one step, so that no request sees half of a change. */
export type LivingFleet = {
  readonly fleet: Fleet;
  apply(changes: AppliedChanges): void;
  /** Begins a change of very many providers, whose rows are added page by page. */
  gather(): GatheredChange;
  /** Holds the present snapshot (held_snapshots.ts). */
  hold(giveUp: () => void): HeldSnapshot;
  /** Makes the trees of some providers changeable: to be called before the fleet shows effects of own writes. */
  detach(providers: Iterable<{ readonly providerId: number }>): void;
};

/** A change whose rows are being collected. The fleet does not show it until it is applied. */
export type GatheredChange = {
  add(page: FleetPage): void;
  /**
   * Applies the change to the fleet.
   *
   * @param ids all providers that changed; those without rows were deleted
   */
  apply(ids: readonly number[], names: ChangedNames): void;
};

/** A fleet that is being loaded: providers are added page by page; when all are there, `finish` links them to trees. */
export type GrowingFleet = { add(page: FleetPage): void; finish(): LivingFleet };

/**
 * How many copied providers held snapshots may keep in a small fleet. In a larger fleet they may keep as many as the fleet has: so one
 * answer is always sent to its end, however slowly its client reads.
 */
const fewestKept = 50_000;

/** Creates a fleet without providers. @param snapshots the held snapshots of the process; some may show the fleet before this one */
export function buildFleet(
  { traitNames, classNames, limits }: NameRows & { readonly limits?: LimitRows },
  serverRun: string,
  snapshots: HeldSnapshots = createHeldSnapshots(),
): GrowingFleet {
  const byId = createProvidersById();
  const byUuid = new Map<string, Provider>();
  const byName = new Map<string, Provider>();
  const roots: Provider[] = [];
  const slots = createSlots();
  const inUuidOrder = createUuidOrder(byUuid);
  const treeOrders = createTreeOrders(roots, slots);
  const treeRoom = createTreeRoom(roots);
  let latestNumber = 0;
  const fleet = {
    serverRun,
    byId,
    byUuid,
    byName,
    inUuidOrder,
    roots,
    withClass: new Postings<number>(slots),
    withTrait: new Postings<number>(slots),
    inAggregate: new Postings<string>(slots),
    treeOrders,
    treeRoom,
    numberOf: remembering((_key: string) => ++latestNumber, 1000),
    tolerating: new Set<Provider>(),
    traits: namesOf(traitNames),
    classes: namesOf(classNames),
    limits: limits === undefined ? noLimits : limitsOf(limits),
  };

  /** @returns the provider to change: if a held snapshot shows its tree, the fleet has a copy of the tree from now on */
  const changeable = (provider: Provider): Provider => {
    const { root } = provider;
    if (!snapshots.shows(root)) return provider;
    const copies = replaceTree(fleet, slots, root);
    snapshots.noteCopy(copies.get(root) ?? root, copies.size, Math.max(fewestKept, byId.size));
    return copies.get(provider) ?? provider;
  };
  const changeableById = (id: number): Provider | undefined => {
    const provider = byId.get(id);
    return provider === undefined ? undefined : changeable(provider);
  };

  const setRoot = (provider: Provider, isRoot: boolean): void => {
    const index = provider.rootIndex;
    if (isRoot || index !== nowhere) treeOrders.note(provider);
    if (isRoot) {
      if (index === nowhere) provider.rootIndex = roots.push(provider) - 1;
      treeRoom.note(provider.rootIndex);
      return;
    }
    if (index === nowhere) return;
    // The last root moves to the index of the removed root, so that the cost does not depend on the size of the fleet. (A held
    // snapshot may show the moved root: no answer reads its index.)
    provider.rootIndex = nowhere;
    const last = roots.pop();
    if (last === undefined || last === provider) return;
    roots[index] = last;
    last.rootIndex = index;
    treeOrders.note(last);
    treeRoom.note(index);
  };

  const remove = (provider: Provider): void => {
    byId.delete(provider.id);
    setRoot(provider, false);
    setParts(provider, none, none, none);
    slots.free(provider);
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
    noteChange(fleet, provider);
  };

  /** Adds or updates providers from their rows. @returns the providers whose parent changed, and that must be linked again */
  const takeProviders = (rows: readonly ProviderRow[]): Set<Provider> => {
    const relinked = new Set<Provider>();
    for (const row of rows) {
      const known = byId.get(row.id);
      const provider = known ?? blankProvider(row.id);
      if (known === undefined) {
        byId.add(provider);
        slots.take(provider);
        if (row.parent === null) setRoot(provider, true);
      }
      if ((provider.parent?.id ?? null) !== row.parent) relinked.add(provider);
      // Another program may have stored an empty UUID, which a new provider has before it gets its own.
      if (known === undefined || provider.uuid !== row.uuid || byUuid.get(row.uuid) !== provider) {
        inUuidOrder.add(row.uuid);
        setUuid(provider, row.uuid);
        byUuid.set(row.uuid, provider);
      }
      // An empty name may stand for null in the database, so the map may lack it.
      if (row.name !== null && byName.get(row.name) !== provider) byName.set(row.name, provider);
      provider.name = row.name ?? '';
      provider.generation = row.generation;
      provider.createdAtSeconds = row.created ?? undefined;
      provider.updatedAtSeconds = row.updated ?? undefined;
    }
    return relinked;
  };

  const partsOf = partsReader();
  const takeParts = (parts: Iterable<ProviderParts>): void => {
    for (const { id, inventories, traitIds, aggregates } of parts) {
      const provider = byId.get(id);
      if (provider !== undefined) setParts(provider, inventories, traitIds, aggregates);
    }
  };

  /** Removes the UUID and the name of a provider from the maps, unless the provider keeps them. */
  const forgetNames = (old: Provider, uuid: string | undefined, name: string): void => {
    if (old.uuid !== uuid && byUuid.get(old.uuid) === old) byUuid.delete(old.uuid);
    if ((old.name !== name || name === '') && byName.get(old.name) === old) byName.delete(old.name);
  };

  /** Adds new providers, replaces changed ones, and removes those of the ids that have no row. */
  const takeWhole = (ids: readonly number[], rows: readonly ProviderRow[], parts: Iterable<ProviderParts>): void => {
    // linkTrees changes the former and the new trees of these providers.
    for (const id of ids) changeableById(id);
    for (const { parent } of rows) if (parent !== null) changeableById(parent);
    const gone = new Set(ids);
    for (const { id } of rows) gone.delete(id);
    const removedProviders = [...gone].flatMap((id) => byId.get(id) ?? []);
    // Within one refresh a name may move from one provider to another: so all old names are removed before new ones are added.
    for (const old of removedProviders) forgetNames(old, undefined, '');
    for (const row of rows) {
      const old = byId.get(row.id);
      if (old !== undefined) forgetNames(old, row.uuid, row.name ?? '');
    }
    const relinked = takeProviders(rows);
    for (const provider of removedProviders) remove(provider);
    linkTrees(byId, rows, relinked, removedProviders, setRoot);
    takeParts(parts);
  };

  const takeNames = ({ traitNames = null, classNames = null, limits = null }: ChangedNames): void => {
    if (limits !== null) fleet.limits = limitsOf(limits);
    if (traitNames !== null) fleet.traits = namesOf(traitNames);
    if (classNames !== null) fleet.classes = namesOf(classNames);
    if (traitNames !== null || classNames !== null) {
      for (const root of roots) root.cache = undefined;
    }
  };

  const apply = (changes: AppliedChanges): void => {
    takeNames(changes);
    if (changes.whole) {
      const { inventories, traits, aggregates } = changes;
      const providers = changes.providers ?? none;
      const rows = {
        providers,
        inventories: inventories ?? none,
        traits: traits ?? none,
        aggregates: aggregates ?? none,
      };
      takeWhole(changes.whole, providers, partsOf(pageOf(rows)));
    }
    for (const { provider: id, classes, deltas } of changes.moved ?? none) {
      const provider = changeableById(id);
      if (provider === undefined) continue;
      for (const inventory of provider.inventories) {
        const index = classes.indexOf(inventory.fields.classId);
        if (index !== -1) inventory.used += deltas[index] ?? 0;
      }
      noteChange(fleet, provider);
    }
    for (const { id, generation, created, updated } of changes.touched ?? none) {
      const provider = changeableById(id);
      if (provider === undefined) continue;
      provider.generation = generation;
      provider.createdAtSeconds = created ?? undefined;
      provider.updatedAtSeconds = updated ?? undefined;
    }
    treeRoom.settle();
  };

  const gather = (): GatheredChange => {
    const rows: ProviderRow[] = [];
    const parts: ProviderParts[] = [];
    return {
      // `add` does most of the work, page by page, so that `apply` blocks the process only for a short time.
      add: (page) => {
        rows.push(...page.providers);
        parts.push(...partsOf(page));
      },
      apply: (ids, names) => {
        takeNames(names);
        takeWhole(ids, rows, parts);
        treeRoom.settle();
      },
    };
  };

  // A parent may be read after its children, so providers are linked at the end.
  const unlinked: ProviderRow[] = [];
  return {
    add: (page) => {
      takeProviders(page.providers);
      takeParts(partsOf(page));
      for (const row of page.providers) if (row.parent !== null) unlinked.push(row);
    },
    finish: () => {
      linkTrees(byId, unlinked, new Set(unlinked.flatMap(({ id }) => byId.get(id) ?? [])), [], setRoot);
      return {
        fleet,
        apply,
        gather,
        hold: (giveUp) => snapshots.hold(byId.size, giveUp),
        detach: (effects) => {
          for (const { providerId } of effects) changeableById(providerId);
        },
      };
    },
  };
}

/** Notes that the parts or the usages of a provider have changed: the cache of its tree is invalid. */
export function noteChange({ treeOrders, treeRoom }: Pick<Fleet, 'treeOrders' | 'treeRoom'>, { root }: Provider): void {
  root.cache = undefined;
  treeOrders.note(root);
  treeRoom.note(root.rootIndex);
}

const none: readonly never[] = [];
