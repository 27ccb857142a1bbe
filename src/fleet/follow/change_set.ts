import { allParts, type ChangedParts, descendantsBit, partBits } from '../../../db/fleet/changed_parts.ts';
import type { Fleet } from '../model/fleet.ts';
import { type Provider, subtreeOf, treeOf } from '../model/provider.ts';

/** A part of a provider that clients follow. */
export type Part = keyof typeof partBits;

/** The names of the parts, in the order in which they are told. */
export const partNames: readonly Part[] = Object.keys(partBits).filter((name): name is Part => name in partBits);

/** What a client is told of. */
export type Change =
  | { readonly resource_provider: string; readonly parts: readonly Part[] }
  | { readonly resource_provider: string; readonly deleted: true }
  | { readonly traits: true }
  | { readonly resource_classes: true };

/** What changed between two positions, for clients that follow the same or other parts. */
export type ChangeSet = {
  /** How many entries there are for a client that follows these parts. */
  size(bits: number): number;
  /** The entries as a JSON list. It is made once for all clients that follow the same parts. */
  text(bits: number): string;
};

/** The bits of some parts. */
export const bitsOf = (parts: readonly Part[]): number => parts.reduce((bits, part) => bits | partBits[part], 0);

/**
 * Merges rows of the change log by UUID, to the state that a fleet shows.
 *
 * @param fleet shows all that the rows tell of, or more
 */
export function changeSetOf(fleet: Fleet, rows: readonly ChangedParts[]): ChangeSet {
  const parts = new Map<string, number>();
  const deleted = new Set<string>();
  const kinds = { traits: false, classes: false };
  const change = ({ uuid }: Provider, bits: number): void => {
    parts.set(uuid, (parts.get(uuid) ?? 0) | bits);
  };
  for (const [, id, uuid, bits, ids] of rows) {
    if (id === null) {
      takeNames(fleet, bits, ids, kinds, change);
      continue;
    }
    const provider = uuid === null ? fleet.byId.get(id) : fleet.byUuid.get(uuid);
    if (provider !== undefined) {
      change(provider, bits & allParts);
      if (bits & descendantsBit) for (const each of movedWith(provider)) change(each, partBits.provider);
    } else if (uuid !== null) deleted.add(uuid);
    // Without a UUID it is a part of a provider that was deleted, which a row of its own tells.
  }
  const names: readonly Change[] = [
    ...(kinds.traits ? [{ traits: true } as const] : []),
    ...(kinds.classes ? [{ resource_classes: true } as const] : []),
  ];
  const sizes = new Map<number, number>();
  const texts = new Map<number, string>();
  return {
    size: (wanted) => {
      let size = sizes.get(wanted);
      if (size === undefined) {
        size = deleted.size + names.length;
        for (const bits of parts.values()) if (bits & wanted) size += 1;
        sizes.set(wanted, size);
      }
      return size;
    },
    text: (wanted) => {
      let text = texts.get(wanted);
      if (text === undefined) {
        text = JSON.stringify([...entries(parts, deleted, wanted), ...names]);
        texts.set(wanted, text);
      }
      return text;
    },
  };
}

function takeNames(
  fleet: Fleet,
  bits: number,
  ids: ChangedParts[4],
  kinds: { traits: boolean; classes: boolean },
  change: (provider: Provider, bits: number) => void,
): void {
  if (bits & partBits.traits) kinds.traits = true;
  if (bits & partBits.inventories) kinds.classes = true;
  for (const id of ids ?? []) {
    if (id === null) continue;
    if (bits & partBits.traits) for (const provider of fleet.withTrait.of(id)) change(provider, partBits.traits);
    if (bits & partBits.inventories) {
      for (const provider of fleet.withClass.of(id)) change(provider, partBits.inventories | partBits.usages);
    }
  }
}

/** Those whose root may be another one: the descendants, and where parents form a loop the whole tree. */
const movedWith = (provider: Provider): readonly Provider[] =>
  provider.root.parent === undefined ? subtreeOf(provider) : treeOf(provider.root);

function* entries(parts: ReadonlyMap<string, number>, deleted: ReadonlySet<string>, wanted: number): Generator<Change> {
  for (const [uuid, bits] of parts) {
    const told = bits & wanted;
    if (told !== 0) yield { resource_provider: uuid, parts: partNames.filter((name) => told & partBits[name]) };
  }
  for (const uuid of deleted) yield { resource_provider: uuid, deleted: true };
}
