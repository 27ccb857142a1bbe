import type { Fleet } from './fleet.ts';
import { nowhere, type Places } from './places.ts';
import { blankProvider, type Inventory, type Provider, treeOf } from './provider.ts';
import type { LivingProvidersById } from './providers_by_id.ts';

/** All that has the providers of a fleet. (A list by the index or the place of a provider need not know of its copy.) */
type Indexes = Pick<Fleet, 'withClass' | 'withTrait' | 'inAggregate'> & {
  readonly byId: LivingProvidersById;
  readonly byUuid: Map<string, Provider>;
  readonly byName: Map<string, Provider>;
  readonly roots: Provider[];
};

/** Puts a copy of a tree into the fleet. Nothing of the tree itself is changed from now on. @returns by provider, its copy */
export function replaceTree(fleet: Indexes, places: Places, root: Provider): ReadonlyMap<Provider, Provider> {
  const { byId, byUuid, byName, roots, withClass, withTrait, inAggregate } = fleet;
  const copies = copyTree(root);
  for (const [former, copy] of copies) {
    byId.add(copy);
    if (byUuid.get(former.uuid) === former) byUuid.set(former.uuid, copy);
    if (byName.get(former.name) === former) byName.set(former.name, copy);
    if (former.rootPlace !== nowhere) roots[former.rootPlace] = copy;
    places.replace(copy);
    withClass.replace(former, copy, former.inventories.map(classOf));
    withTrait.replace(former, copy, former.traitIds);
    inAggregate.replace(former, copy, former.aggregates);
  }
  root.findings = undefined; // they take memory, and few answers that hold the moment will need them
  return copies;
}

const classOf = ({ fields }: Inventory): number => fields.classId;

/**
 * Copies a tree. The copies have the same content as the providers, and are linked with each other as these are. Lists that
 * never change are shared.
 *
 * @returns by provider, its copy
 */
function copyTree(root: Provider): ReadonlyMap<Provider, Provider> {
  const copies = new Map<Provider, Provider>();
  for (const provider of treeOf(root)) copies.set(provider, copyAlone(provider));
  const copyOf = (provider: Provider): Provider => copies.get(provider) ?? provider;
  for (const [provider, copy] of copies) {
    copy.parent = provider.parent && copyOf(provider.parent);
    copy.root = copyOf(provider.root);
    if (provider.children.length > 0) copy.children = provider.children.map(copyOf);
    if (provider.tree.length > 0) copy.tree = provider.tree.map(copyOf);
  }
  return copies;
}

/** All but the links. The object is made as those of new providers, so that V8 knows one form of provider only. */
function copyAlone(provider: Provider): Provider {
  const copy = blankProvider(provider.id);
  copy.uuid = provider.uuid;
  copy.uuidText = provider.uuidText;
  copy.name = provider.name;
  copy.generation = provider.generation;
  copy.createdAtSeconds = provider.createdAtSeconds;
  copy.updatedAtSeconds = provider.updatedAtSeconds;
  copy.place = provider.place;
  copy.rootPlace = provider.rootPlace;
  copy.inventories = provider.inventories.map(({ fields, used, modifiedAtSeconds }) => ({
    fields,
    used,
    modifiedAtSeconds,
  }));
  copy.traitIds = provider.traitIds;
  copy.aggregates = provider.aggregates;
  return copy;
}
