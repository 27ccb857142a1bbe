import type { ClaimedRows } from '../../db/statements/lasting_locks.ts';
import { type RequestIds, requestsServed } from '../request_ids.ts';
import type { IsAloneNext, Partable } from '../turns/parting.ts';
import type { Claim } from './claim.ts';

/** A claim that waits to be written. */
export type Waiting = Partable & {
  readonly claim: Claim;
  readonly askedBy: readonly RequestIds[];
  /** Whether the consumers' present state must be read: a claim for new consumers goes without, and the write proves it. */
  readonly readsConsumers: boolean;
  /** The refusal of a judgement on a picture that may have been old: given only if a fresh one repeats it. */
  readonly refusedOnce: boolean;
  readonly lostRaces: number;
  readonly resolve: () => void;
};

/** A claim that has just come, with whom to tell. */
export const waitingFor = (claim: Claim, resolve: () => void, reject: (error: unknown) => void): Waiting => ({
  claim,
  askedBy: requestsServed(),
  readsConsumers: claim.consumers.some(
    ({ knownGeneration, allocations, expected }) =>
      knownGeneration !== null || allocations.size === 0 || expected !== undefined,
  ),
  refusedOnce: false,
  lostRaces: 0,
  alone: false,
  resolve,
  reject,
});

/** A claim that was refused by a picture that may have been old, as it goes again. */
export const suspected = (waiting: Waiting): Waiting => ({ ...waiting, refusedOnce: true, readsConsumers: true });

/** How many claims one statement takes: beyond this, waiting for the next costs less than a longer one. */
const batchLimit = 256;

/**
 * Takes the next claims, no two of which concern the same consumer: the later one must see what the earlier did. A claim that
 * brings inventories goes by itself, since all others are judged by the inventories that are there.
 *
 * @param heldUp batches whose statement waits for somebody else: what concerns their consumers or providers would wait, too
 * @returns the batch, and who goes on waiting, in order
 */
export function takeBatch(
  queue: readonly Waiting[],
  heldUp: readonly (readonly Waiting[])[],
  isAloneNext: IsAloneNext,
): { readonly batch: readonly Waiting[]; readonly later: Waiting[] } {
  const concernsHeldUp = concerning(heldUp.flat());
  const concernsAlone = concerning(queue.filter(({ alone }) => alone));
  const takenConsumers = new Set<string>();
  const others: Waiting[] = [];
  let alone: Waiting | undefined;
  let limit = batchLimit;
  for (const waiting of queue) {
    const isHeldUp = consumersOf(waiting).some((uuid) => takenConsumers.has(uuid)) || concernsHeldUp(waiting);
    for (const uuid of consumersOf(waiting)) takenConsumers.add(uuid);
    if (isHeldUp) continue;
    if (waiting.alone) alone ??= waiting;
    else if (!concernsAlone(waiting)) {
      const bringsInventories = waiting.claim.inventories.length > 0;
      if (others.length < (bringsInventories ? Math.min(1, limit) : limit)) others.push(waiting);
      if (bringsInventories) limit = 0;
    }
  }
  const goesAlone = isAloneNext({ heldUp: heldUp.length, alone: alone !== undefined, others: others.length > 0 });
  const batch = goesAlone && alone !== undefined ? [alone] : others;
  const taken = new Set(batch);
  return { batch, later: queue.filter((waiting) => !taken.has(waiting)) };
}

/** Tells whether a claim concerns a consumer or a provider of some others. */
export const concerning = (others: readonly Waiting[]): ((waiting: Waiting) => boolean) => needing(rowsOf(others));

/** Tells whether a claim needs any of some rows. */
export function needing({ providers, consumers }: ClaimedRows): (waiting: Waiting) => boolean {
  if (providers.size + consumers.size === 0) return () => false;
  return (waiting) =>
    consumersOf(waiting).some((uuid) => consumers.has(uuid)) ||
    providersOf(waiting).some((uuid) => providers.has(uuid));
}

/** What some claims need. */
export const rowsOf = (claims: readonly Waiting[]): ClaimedRows => ({
  providers: new Set(claims.flatMap(providersOf)),
  consumers: new Set(claims.flatMap(consumersOf)),
});

/** The consumers that a claim writes, by their UUIDs. */
export const consumersOf = ({ claim }: Waiting): string[] => claim.consumers.map(({ uuid }) => uuid);

const providersOf = ({ claim }: Waiting): string[] => [
  ...claim.consumers.flatMap(({ allocations }) => [...allocations.keys()]),
  ...claim.inventories.map(({ providerUuid }) => providerUuid),
];

/** Whether a claim was sent for one entity tag of what a consumer has. */
export const isByTag = ({ claim }: Waiting): boolean => claim.consumers.some(({ expected }) => expected !== undefined);

/** Whether a claim keeps the consumer's type, which its entity tag is of, or was sent for one tag of owner and type and all. */
export const needsOwner = ({ claim }: Waiting): boolean =>
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);
