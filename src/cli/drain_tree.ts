import { forEach } from '../client/for_each.ts';
import {
  ApiError,
  isConcurrentUpdate,
  isNotFound,
  type Placement,
  retryConflicts,
  type WholeProvider,
} from '../client/index.ts';
import { isSameList, listDifference } from './differences.ts';
import { drainedTrait, isDrainMark, withDrain, withoutDrain } from './drain_marks.ts';
import { CommandFailure } from './exit_codes.ts';

/** How often a tree is read again because another program writes it at the same time. */
const mostRounds = 10;

/** The providers of a tree, and which of them had to be written. */
export type ChangedTree = { readonly tree: readonly WholeProvider[]; readonly changed: readonly WholeProvider[] };

/** All providers of the tree that this one is in. */
export const readTree = ({ providerSummaries }: Placement, in_tree: string): Promise<readonly WholeProvider[]> =>
  Array.fromAsync(providerSummaries.list({ in_tree }));

/**
 * Drains each provider of a tree, until a reading of the tree shows that all are. The marks that remember what was reserved are written
 * first: if this is interrupted, it can be repeated, and `undrainTree` restores the former inventories.
 *
 * @throws CommandFailure if another program keeps writing the inventories, or the tree
 */
export async function drainTree(placement: Placement, in_tree: string): Promise<ChangedTree> {
  const changed = new Map<string, WholeProvider>();
  for (let round = 1; ; round++) {
    const tree = await readTree(placement, in_tree);
    const open = tree.filter((provider) => !isSame(provider, drainedOrRefused(provider)));
    if (open.length === 0) return { tree, changed: [...changed.values()] };
    if (round > mostRounds) {
      const names = open.map(({ name }) => name).join(', ');
      throw new CommandFailure('conflict', `Another program keeps writing what ${names} has. Stop it first.`);
    }
    for (const provider of open) changed.set(provider.uuid, provider);
    await forEach(open, (provider) =>
      rewrite(placement, provider, drainedOrRefused, async (before, after) => {
        const generation = await writeTraits(placement, before, after);
        await writeInventories(placement, before, after, generation);
      }),
    );
  }
}

/** Lifts the drain of each provider of a tree: first the reserved amounts are restored, then the marks are removed. */
export async function undrainTree(placement: Placement, in_tree: string): Promise<ChangedTree> {
  const tree = await readTree(placement, in_tree);
  const changed = tree.filter((provider) => withoutDrain(provider) !== provider);
  await forEach(changed, (provider) =>
    rewrite(placement, provider, withoutDrain, async (before, after) => {
      const generation = await writeInventories(placement, before, after, before.generation);
      await writeTraits(placement, { ...before, generation }, after);
    }),
  );
  await removeUnused(placement);
  return { tree, changed };
}

function drainedOrRefused(provider: WholeProvider): WholeProvider {
  try {
    return withDrain(provider);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandFailure('failed', `${provider.name}: ${error.message}`, { cause: error });
  }
}

/** Changes a provider; if another program changed it since it was read, it is read and changed again. */
const rewrite = (
  placement: Placement,
  read: WholeProvider,
  change: (provider: WholeProvider) => WholeProvider,
  write: (before: WholeProvider, after: WholeProvider) => Promise<void>,
): Promise<void> =>
  retryConflicts(
    async (attempt) => {
      const [before] = attempt === 1 ? [read] : await placement.providerSummaries.page({ uuids: [read.uuid] });
      if (before !== undefined) await write(before, change(before));
    },
    { isConflict: (error) => isConcurrentUpdate(error) || isNotFound(error) || isUnknownTrait(error) },
  );

/** Another command has deleted an unused mark, just before this command could set it on a provider. */
const isUnknownTrait = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 400 && /No such trait/.test(error.detail);

/** @returns the generation after it */
async function writeTraits(placement: Placement, before: WholeProvider, { traits }: WholeProvider): Promise<number> {
  if (isSameList(before.traits, traits)) return before.generation;
  for (const trait of listDifference(before.traits, traits).added) await placement.traits.ensure(trait);
  const wanted = { traits, resource_provider_generation: before.generation };
  return (await placement.providerTraits.set(before.uuid, wanted)).resource_provider_generation;
}

/** @returns the generation after it */
async function writeInventories(
  placement: Placement,
  before: WholeProvider,
  { inventories }: WholeProvider,
  generation: number,
): Promise<number> {
  if (isSameReserved(before, { ...before, inventories })) return generation;
  const wanted = { inventories, resource_provider_generation: generation };
  return (await placement.inventories.set(before.uuid, wanted)).resource_provider_generation;
}

const isSame = (one: WholeProvider, other: WholeProvider): boolean =>
  isSameList(one.traits, other.traits) && isSameReserved(one, other);

const isSameReserved = (one: WholeProvider, other: WholeProvider): boolean =>
  Object.entries(one.inventories).every(([name, { reserved }]) => other.inventories[name]?.reserved === reserved);

/**
 * Deletes the marks that no provider has any more, also marks of a command that was stopped half-way: they would fill the list
 * of traits. Queries continue to name `CUSTOM_DRAINED`.
 */
async function removeUnused({ traits }: Placement): Promise<void> {
  const tried = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      // Another host has got it, another command was faster, or this user may not: nothing depends on it.
      if (!(error instanceof ApiError)) throw error;
    }
  };
  await tried(async () => {
    const unused = await traits.list({ name: `startswith:${drainedTrait}_`, associated: false });
    await forEach(unused.filter(isDrainMark), (mark) => tried(() => traits.delete(mark)));
  });
}
