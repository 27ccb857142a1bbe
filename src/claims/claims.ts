import type { Database } from '../../db/connect.ts';
import { hasSqlstate, isLostRace, sqlstate } from '../../db/sqlstate.ts';
import { ensureOwners } from '../../db/statements/ensure_owners.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/read_consumers.ts';
import { type ClaimWrite, type LostGuard, writeClaims } from '../../db/statements/write_claims.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Inventory } from '../fleet/provider.ts';
import { type Claim, ClaimRefused } from './claim.ts';
import { judge } from './judge.ts';

/** Writes claims; those that arrive while a write is under way go together in the next. */
export type Claims = {
  /** Resolves once the claim is written. @throws ClaimRefused */
  write(claim: Claim): Promise<void>;
};

/** A claim that waits to be written. */
type Waiting = {
  readonly claim: Claim;
  /** Whether the consumers' present state must be read: a claim for new consumers goes without, and the write proves it. */
  readsConsumers: boolean;
  /** The refusal of a judgement on a picture that may have been old: given only if a fresh one repeats it. */
  refusedOnce: boolean;
  lostRaces: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

type Judged = { readonly waiting: Waiting; readonly write: ClaimWrite };

/** How many claims one statement takes: beyond this, waiting for the next costs less than a longer one. */
const batchLimit = 256;

export function openClaims(
  database: Database,
  fleet: FleetKeeper,
  options: { readonly conflictRetryCount: number },
): Claims {
  let queue: Waiting[] = [];
  let running = false;
  /** Whether the fleet may lack something that we know of: an own write, or what made a claim lose or be refused. */
  let stale = false;

  /** The next claims, no two of which concern the same consumer: the later one must see what the earlier did. */
  const nextBatch = (): Waiting[] => {
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const taken = new Set<string>();
    for (const waiting of queue) {
      const uuids = waiting.claim.consumers.map(({ uuid }) => uuid);
      if (batch.length >= batchLimit || uuids.some((uuid) => taken.has(uuid))) later.push(waiting);
      else batch.push(waiting);
      for (const uuid of uuids) taken.add(uuid);
    }
    queue = later;
    return batch;
  };

  const processBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const toRead = batch.filter((waiting) => waiting.readsConsumers);
    const uuids = toRead.flatMap(({ claim }) => claim.consumers.map(({ uuid }) => uuid));
    const [states] = await Promise.all([
      uuids.length > 0 ? readConsumers(database, uuids) : new Map<string, ConsumerState>(),
      stale ? fleet.fresh() : undefined,
    ]);
    stale = false;
    const judged = judgeAll(batch, states);
    if (judged.length === 0) return;
    let lost: readonly LostGuard[];
    try {
      lost = await writeClaims(
        database,
        judged.map(({ write }) => write),
      );
    } catch (error) {
      stale = true;
      if (hasSqlstate(error, sqlstate.uniqueViolation)) {
        // A consumer that should be new is there: none of the batch was written, and all are judged by what is there.
        for (const { waiting } of judged) tryAgain({ ...waiting, readsConsumers: true });
      } else if (isLostRace(error)) {
        for (const { waiting } of judged) tryAgain(waiting);
      } else {
        for (const { waiting } of judged) waiting.reject(error);
      }
      return;
    }
    stale = true;
    await ensureMissingOwners(judged.filter((_, place) => lost[place] === 'owner'));
    for (const [place, { waiting }] of judged.entries()) settle(waiting, lost[place]);
  };

  /** Judges a batch in order, each claim with what those before it promised to take. Refusals are given, or wait. */
  const judgeAll = (batch: readonly Waiting[], states: ReadonlyMap<string, ConsumerState>): Judged[] => {
    const promised = new Map<Inventory, number>();
    return batch.flatMap((waiting) => {
      try {
        const { demands, ...write } = judge(fleet.known, waiting.claim, states, promised);
        // What a claim frees is not promised to others: it may lose its guards, and they would be over capacity.
        for (const { inventory, freed, wanted } of demands) {
          if (inventory !== undefined && wanted > freed) {
            promised.set(inventory, (promised.get(inventory) ?? 0) + wanted - freed);
          }
        }
        return [{ waiting, write }];
      } catch (error) {
        if (error instanceof ClaimRefused && !waiting.refusedOnce) {
          queue.push({ ...waiting, refusedOnce: true, readsConsumers: true });
          stale = true;
        } else if (promised.size > 0) {
          // Others of the batch were promised what it wants, and may lose their guards yet: it is judged after them.
          queue.push(waiting);
        } else {
          waiting.reject(error);
        }
        return [];
      }
    });
  };

  const settle = (waiting: Waiting, lost: LostGuard): void => {
    if (lost === undefined) waiting.resolve();
    else if (lost === 'owner') queue.push(waiting);
    else tryAgain(lost === 'consumer' ? { ...waiting, readsConsumers: true } : waiting);
  };

  const tryAgain = (waiting: Waiting): void => {
    if (waiting.lostRaces >= options.conflictRetryCount) {
      waiting.reject(
        new ClaimRefused(
          'concurrent update',
          'Another thread concurrently updated the resource provider data. Please retry your update',
        ),
      );
      return;
    }
    queue.push({ ...waiting, lostRaces: waiting.lostRaces + 1, refusedOnce: false });
  };

  const ensureMissingOwners = async (judged: readonly Judged[]): Promise<void> => {
    if (judged.length === 0) return;
    const consumers = judged.flatMap(({ write }) => write.consumers);
    await ensureOwners(database, {
      projects: consumers.map(({ projectExternalId }) => projectExternalId),
      users: consumers.map(({ userExternalId }) => userExternalId),
      types: consumers.flatMap(({ consumerType }) => consumerType ?? []),
    });
  };

  const run = async (): Promise<void> => {
    running = true;
    while (queue.length > 0) {
      const batch = nextBatch();
      await processBatch(batch).catch((error: unknown) => {
        for (const waiting of batch) waiting.reject(error);
      });
    }
    running = false;
  };

  return {
    write: (claim) =>
      new Promise((resolve, reject) => {
        const readsConsumers = claim.consumers.some(
          ({ knownGeneration, allocations }) => knownGeneration !== null || allocations.size === 0,
        );
        queue.push({ claim, readsConsumers, refusedOnce: false, lostRaces: 0, resolve, reject });
        if (!running) void run();
      }),
  };
}
