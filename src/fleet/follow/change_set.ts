import {
  allParts,
  type ChangedParts,
  consumersBit,
  descendantsBit,
  goneBit,
  partBits,
  termBit,
} from '../../../db/fleet/changed_parts.ts';
import type { Fleet } from '../model/fleet.ts';
import { type Provider, subtreeOf, treeOf } from '../model/provider.ts';

/** A part of a provider that clients follow. */
export type Part = keyof typeof partBits;

/** The names of the parts, in the order in which they are reported. */
export const partNames: readonly Part[] = Object.keys(partBits).filter((name): name is Part => name in partBits);

/** A change as it is reported to a client. */
export type Change =
  | { readonly resource_provider: string; readonly parts: readonly Part[] }
  | { readonly resource_provider: string; readonly deleted: true }
  | { readonly traits: true }
  | { readonly resource_classes: true }
  | { readonly consumer: string }
  | { readonly consumer: string; readonly gone: true; readonly ended: 'released' | 'term' };

/** Which changes a client wants. */
export type Interest = {
  /** The bits of the parts, and the bit of consumers. */
  readonly bits: number;
  /** Only providers that have an inventory of the class with this name, or may have had one before. */
  readonly className?: string | undefined;
  /** Only providers of the tree that the provider with this UUID is in, or that may have been in it before. */
  readonly inTree?: string | undefined;
  /** Equal for clients with the same interest. */
  readonly key: string;
};

/** Makes the interest of a client. Without `parts` the client gets all parts of providers, and no consumers. */
export function interestOf(
  parts: readonly (Part | 'consumers')[] = partNames,
  { className, inTree }: Pick<Interest, 'className' | 'inTree'> = {},
): Interest {
  const bits = parts.reduce((all, part) => all | (part === 'consumers' ? consumersBit : partBits[part]), 0);
  return { bits, className, inTree, key: `${bits} ${className ?? ''} ${inTree ?? ''}` };
}

/**
 * The bits of the parts by which a provider may begin or end to be of interest: it may get or lose the class, or enter or leave the tree.
 */
const decidingBits = ({ className, inTree }: Interest): number =>
  (className === undefined ? 0 : partBits.inventories) | (inTree === undefined ? 0 : partBits.provider);

/** The bits of all parts that decide which changes a client gets. */
export const bitsToRead = (interest: Interest): number => interest.bits | decidingBits(interest);

/** The changes between two positions, for clients with any interest. */
export type ChangeSet = {
  /** How many entries there are for a client; infinite where any consumer may have changed and the client wants consumers. */
  size(interest: Interest): number;
  /** The entries as a JSON list. The text is made once for all clients with the same interest. */
  text(interest: Interest): string;
};

/**
 * Merges rows of the change log by UUID, to the state that a fleet shows.
 *
 * @param fleet shows all changes of the rows, and maybe later ones
 */
export function changeSetOf(fleet: Fleet, rows: readonly ChangedParts[]): ChangeSet {
  const parts = new Map<Provider, number>();
  const deleted = new Set<string>();
  const kinds = { traits: false, classes: false };
  /** The bits of the last row of each consumer. */
  const consumers = new Map<string, number>();
  let areAllChanged = false;
  const change = (provider: Provider, bits: number): void => {
    parts.set(provider, (parts.get(provider) ?? 0) | bits);
  };
  for (const [, id, uuid, bits, ids] of rows) {
    if (bits & consumersBit) {
      if (uuid === null) areAllChanged = true;
      else consumers.set(uuid, bits);
      continue;
    }
    if (id === null) {
      takeNames(fleet, bits, ids, kinds, change);
      continue;
    }
    const provider = uuid === null ? fleet.byId.get(id) : fleet.byUuid.get(uuid);
    if (provider !== undefined) {
      change(provider, bits);
      if (bits & descendantsBit) for (const each of movedWith(provider)) change(each, partBits.provider);
    } else if (uuid !== null) deleted.add(uuid);
    // Without a UUID it is a part of a deleted provider, for which the log has another row.
  }
  const names: readonly Change[] = [
    ...(kinds.traits ? [{ traits: true } as const] : []),
    ...(kinds.classes ? [{ resource_classes: true } as const] : []),
  ];
  const lists = new Map<string, readonly ReportedParts[]>();
  const texts = new Map<string, string>();
  const listOf = (interest: Interest): readonly ReportedParts[] => {
    let list = lists.get(interest.key);
    if (list === undefined) {
      list = [...reportedParts(fleet, parts, interest)];
      lists.set(interest.key, list);
    }
    return list;
  };
  const wantsConsumers = ({ bits }: Interest): boolean => (bits & consumersBit) > 0;
  const consumersOf = (interest: Interest): Change[] =>
    wantsConsumers(interest) ? Array.from(consumers, consumerEntry) : [];
  const countConsumers = (interest: Interest): number => {
    if (!wantsConsumers(interest)) return 0;
    return areAllChanged ? Number.POSITIVE_INFINITY : consumers.size;
  };
  return {
    size: (interest) => listOf(interest).length + deleted.size + names.length + countConsumers(interest),
    text: (interest) => {
      let text = texts.get(interest.key);
      if (text === undefined) {
        const ofProviders = [...listOf(interest).map(entryOf), ...Array.from(deleted, deletion)];
        text = JSON.stringify([...ofProviders, ...names, ...consumersOf(interest)]);
        texts.set(interest.key, text);
      }
      return text;
    },
  };
}

/** A provider, and the bits of the parts that are reported to a client; or a consumer and its bits. */
type ReportedParts = readonly [uuid: string, bits: number];

const entryOf = ([uuid, bits]: ReportedParts): Change => ({
  resource_provider: uuid,
  parts: partNames.filter((name) => bits & partBits[name]),
});

const consumerEntry = ([uuid, bits]: ReportedParts): Change =>
  bits & goneBit ? { consumer: uuid, gone: true, ended: bits & termBit ? 'term' : 'released' } : { consumer: uuid };

const deletion = (uuid: string): Change => ({ resource_provider: uuid, deleted: true });

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

/** The providers that may have another root now: the descendants, and where parents form a loop the whole tree. */
const movedWith = (provider: Provider): readonly Provider[] =>
  provider.root.parent === undefined ? subtreeOf(provider) : treeOf(provider.root);

/** The parts of existing providers that are reported to a client. */
function* reportedParts(
  fleet: Fleet,
  parts: ReadonlyMap<Provider, number>,
  interest: Interest,
): Generator<ReportedParts> {
  const isOfInterest = filterOf(fleet, interest);
  const deciding = decidingBits(interest);
  const requested = interest.bits & allParts;
  if (requested === 0) return;
  const entered = treeEntered(fleet, parts, interest);
  for (const { uuid } of entered) yield [uuid, requested];
  for (const [provider, bits] of parts) {
    if (entered.has(provider)) continue;
    // The client has no copy of a provider that comes into its interest by this change: all requested parts are reported.
    const reported = bits & deciding ? requested : bits & requested;
    if (reported === 0 || !(bits & deciding || isOfInterest(provider))) continue;
    yield [provider.uuid, reported];
  }
}

/**
 * The providers of the tree that the provider of `inTree` may just have moved to. They did not change, but the client has not got them
 * yet. Empty if the provider of `inTree` did not move, or if nothing of the tree is reported to the client.
 */
function treeEntered(fleet: Fleet, parts: ReadonlyMap<Provider, number>, { inTree }: Interest): ReadonlySet<Provider> {
  const anchor = inTree === undefined ? undefined : fleet.byUuid.get(inTree);
  const mayHaveMoved = anchor !== undefined && ((parts.get(anchor) ?? 0) & partBits.provider) > 0;
  return new Set(mayHaveMoved ? treeOf(anchor.root) : []);
}

/** Whether a provider is of interest as a fleet shows it. */
function filterOf(fleet: Fleet, { className, inTree }: Interest): (provider: Provider) => boolean {
  if (className === undefined && inTree === undefined) return () => true;
  const classId = className === undefined ? undefined : fleet.classes.byName.get(className)?.id;
  const root = inTree === undefined ? undefined : fleet.byUuid.get(inTree)?.root;
  return (provider) => {
    const hasClass = className === undefined || provider.inventories.some(({ fields }) => fields.classId === classId);
    return hasClass && (inTree === undefined || provider.root === root);
  };
}
