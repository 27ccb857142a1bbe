import { instead } from '../client/errors.ts';
import { forEach } from '../client/for_each.ts';
import { ApiError, isNotFound, type Placement, VersionError, type WholeProvider } from '../client/index.ts';
import { shellWord } from './shell_word.ts';

/*
 * A drained provider has as much reserved of each class as there is, so that no claim fits any more, and what is there stays. What was
 * reserved before is remembered on the provider itself, as traits: any machine can lift the drain, and a command that is stopped
 * half-way loses nothing. The marks are written before the inventories, and removed after them.
 */

/** The trait of every drained provider. */
export const drainedTrait = 'CUSTOM_DRAINED';

/** The reserved amount before the drain: also 0, since a class without such a trait was added after the drain. */
const rememberedTrait = /^CUSTOM_DRAINED_([A-Z0-9_]+)_(\d{1,10})$/;

const longestTrait = 255;

/** Whether a trait belongs to a drain. */
export const isDrainMark = (trait: string): boolean => trait === drainedTrait || rememberedTrait.test(trait);

type Stored = Pick<WholeProvider, 'inventories' | 'traits'>;

/** What was reserved before the drain, by class; undefined for a provider that is not drained. */
export function reservedBeforeDrain({ traits }: Pick<Stored, 'traits'>): ReadonlyMap<string, number> | undefined {
  if (!traits.includes(drainedTrait)) return undefined;
  const found = new Map<string, number>();
  for (const trait of traits) {
    const [, name = '', reserved = ''] = rememberedTrait.exec(trait) ?? [];
    if (name !== '') found.set(name, Math.min(Number(reserved), found.get(name) ?? Number.POSITIVE_INFINITY));
  }
  return found;
}

/**
 * Whether a provider is drained, so that no claim fits. `open`: it was drained, and another program has written its inventories since, so
 * that it accepts claims again.
 */
export function drainOf({ inventories, traits }: Stored): 'drained' | 'open' | undefined {
  if (!traits.includes(drainedTrait)) return undefined;
  return Object.values(inventories).every(({ reserved, total }) => reserved >= total) ? 'drained' : 'open';
}

const withoutMarks = (traits: readonly string[]): readonly string[] => traits.filter((trait) => !isDrainMark(trait));

/** A provider without its drain. If a total is now smaller than what was reserved of it, all of it is reserved. */
export function withoutDrain<Provider extends Stored>(provider: Provider): Provider {
  const before = reservedBeforeDrain(provider);
  if (before === undefined) return provider;
  const inventories: Stored['inventories'] = Object.fromEntries(
    Object.entries(provider.inventories).map(([name, inventory]) => {
      const reserved = Math.min(before.get(name) ?? inventory.reserved, inventory.total);
      return [name, { ...inventory, reserved }];
    }),
  );
  return { ...provider, inventories, traits: withoutMarks(provider.traits) };
}

/**
 * A provider with a drain. The marks of an earlier drain stay; a class that was added since gets a mark.
 *
 * @throws RangeError for a class whose name is too long to be remembered
 */
export function withDrain<Provider extends Stored>(provider: Provider): Provider {
  const before = new Map(reservedBeforeDrain(provider));
  for (const [name, { reserved }] of Object.entries(provider.inventories)) {
    if (!before.has(name)) before.set(name, reserved);
  }
  return reserveAll(provider, before);
}

/**
 * A drained provider with new inventories: the marks have what `provider` reserves now. Its traits have no marks yet.
 */
export const withNewDrain = <Provider extends Stored>(provider: Provider): Provider =>
  reserveAll(provider, new Map(Object.entries(provider.inventories).map(([name, { reserved }]) => [name, reserved])));

function reserveAll<Provider extends Stored>(provider: Provider, before: ReadonlyMap<string, number>): Provider {
  const marks = [drainedTrait, ...Array.from(before, ([name, reserved]) => markOf(name, reserved))];
  return {
    ...provider,
    inventories: Object.fromEntries(
      Object.entries(provider.inventories).map(([name, inventory]) => [
        name,
        { ...inventory, reserved: inventory.total },
      ]),
    ),
    traits: [...withoutMarks(provider.traits), ...marks],
  };
}

function markOf(name: string, reserved: number): string {
  const mark = `CUSTOM_DRAINED_${name}_${reserved}`;
  if (mark.length <= longestTrait) return mark;
  throw new RangeError(
    `The name of the class ${name} is too long for a trait that remembers how much of it is reserved.`,
  );
}

/**
 * The UUIDs of providers with the mark of a drain, also where they accept claims again. Empty if they cannot be read: the service is too
 * old for traits, or this user may not read them.
 *
 * @param in_tree any provider of a tree, if only this tree matters
 */
export async function drainedProviders({ providers }: Placement, in_tree?: string): Promise<ReadonlySet<string>> {
  // 400: the service refuses a trait that it does not know, so nothing was ever drained. 403: this user may not read. Or it is too old.
  const cannotBeRead = (error: unknown): boolean =>
    error instanceof VersionError || (error instanceof ApiError && [400, 403].includes(error.status));
  const drained = await providers.list({ in_tree, required: [drainedTrait] }).catch(instead([], cannotBeRead));
  return new Set(drained.map(({ uuid }) => uuid));
}

/** The drained providers as `drainOf` judges them, by UUID. @param in_tree any provider of a tree, if only this tree matters */
export async function drainStates(
  placement: Placement,
  in_tree?: string,
): Promise<ReadonlyMap<string, ReturnType<typeof drainOf>>> {
  const marked = [...(await drainedProviders(placement, in_tree))];
  const states = await forEach(marked, async (uuid) => {
    const has = await placement.inventories.list(uuid).catch(instead(undefined, isNotFound));
    return [uuid, has && drainOf({ inventories: has.inventories, traits: [drainedTrait] })] as const;
  });
  return new Map(states);
}

/** What to do about a drained provider whose inventories were written since. */
export const openAgain = (name: string): string =>
  `${name} is drained, and accepts claims again. Drain it once more: placement drain ${shellWord(name)}`;

/** How to undo a drain. @param name of any provider of the tree */
export const undrainHint = (name: string): string =>
  `What is drained takes no new claims. "placement undrain ${shellWord(name)}" lifts that, for the whole tree of ${name}.`;
