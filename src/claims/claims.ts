import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { hasSqlstate, isLostRace, isTimedOut, sqlstate } from '../../db/sqlstate.ts';
import type { ClaimWrite } from '../../db/statements/claim_write.ts';
import { ensureOwners } from '../../db/statements/ensure_owners.ts';
import { findLastingLocks } from '../../db/statements/lasting_locks.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/read_consumers.ts';
import { type WrittenClaims, writeClaims } from '../../db/statements/write_claims.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Inventory } from '../fleet/provider.ts';
import { inTurn } from '../in_turn.ts';
import { parted, refuseParted, takingTurns } from '../parting.ts';
import { onBehalfOf, requestsServed } from '../request_ids.ts';
import { type Claim, ClaimRefused, type RefusalReason } from './claim.ts';
import { effectsOf, isForeseeable, type Judged, roomsOf } from './effects.ts';
import { judge } from './judge.ts';
import { concerning, consumersOf, needing, rowsOf, takeBatch, type Waiting } from './waiting.ts';

/** Writes claims; those that arrive while a write is under way go together in the next. */
export type Claims = {
  /** Resolves once the claim is written. @throws ClaimRefused */
  write(claim: Claim): Promise<void>;
};

type Refused = { readonly waiting: Waiting; readonly refusal: ClaimRefused };
type States = ReadonlyMap<string, ConsumerState>;

/** While others claim on the same providers the fleet is kept no older: every batch reads in the log what they did since. */
const contestedAgeSeconds = 0.02;

/** Who met others on a provider expects them for so many batches: a batch that gives no leeway in vain is judged twice. */
const expectedAfterwards = 8;

export function openClaims(
  database: Database,
  fleet: FleetKeeper,
  options: { readonly conflictRetryCount: number; readonly onRetry?: () => void },
): Claims {
  let queue: Waiting[] = [];
  /** Whether the fleet may lack something: what made a claim lose or be refused, or a write that it does not foresee. */
  let stale = false;
  /** How many more batches expect that others change their providers meanwhile: they lock them first, and give leeway. */
  let expectingOthers = 0;

  /** @param again is given the claims that are to go with the next batch */
  const processBatch = async (batch: readonly Waiting[], again: Waiting[]): Promise<void> => {
    const reading = readStates(batch.filter((waiting) => waiting.readsConsumers));
    // A refusal is only given on a fleet that is newer than what was read of the consumers: see giveRefusals.
    const mayRefuse = batch.some((waiting) => waiting.refusedOnce);
    if (mayRefuse) await reading;
    // Entity tags are of names, which no guard proves.
    const mustBeFresh = stale || mayRefuse || batch.some(isByTag);
    const [states] = await Promise.all([reading, mustBeFresh ? bringUpToDate() : undefined]);
    const { judged, refused } = judgeAll(batch, states, again);
    const results = await Promise.allSettled([write(judged, again), giveRefusals(refused, states, again)]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  /** What is found to be lacking meanwhile is for the next time. */
  const bringUpToDate = async (): Promise<void> => {
    stale = false;
    try {
      await fleet.fresh();
    } catch (error) {
      stale = true;
      throw error;
    }
  };

  const readStates = async (batch: readonly Waiting[]): Promise<States> =>
    batch.length > 0
      ? repeatLostRaces(() => readConsumers(database, batch.flatMap(consumersOf), batch.some(needsOwner)))
      : new Map();

  /** Judges a batch in order, each claim with what those before it promised to take. */
  const judgeAll = (
    batch: readonly Waiting[],
    states: States,
    again: Waiting[],
  ): { judged: Judged[]; refused: Refused[] } => {
    const promised = new Map<Inventory, number>();
    const judged: Judged[] = [];
    const refused: Refused[] = [];
    for (const waiting of batch) {
      try {
        const { demands, ...write } = judge(fleet.known, waiting.claim, states, promised);
        // What a claim frees is not promised to others: it may lose its guards, and they would be over capacity.
        for (const { inventory, freed, wanted } of demands) {
          if (inventory !== undefined && wanted > freed) {
            promised.set(inventory, (promised.get(inventory) ?? 0) + wanted - freed);
          }
        }
        judged.push({ waiting, write, demands });
      } catch (error) {
        if (!(error instanceof ClaimRefused)) waiting.reject(error);
        else if (!waiting.refusedOnce) again.push(suspected(waiting));
        // Others of the batch were promised what it wants, and may lose their guards yet: it is judged before the next.
        else if (promised.size > 0) again.push(waiting);
        else refused.push({ waiting, refusal: error });
      }
    }
    return { judged, refused };
  };

  const suspected = (waiting: Waiting): Waiting => {
    stale = true;
    return { ...waiting, refusedOnce: true, readsConsumers: true };
  };

  /**
   * Capacity is judged by the usage in the fleet less what the consumers have, which two statements read. The refusal holds
   * if the consumers have the same before the fleet was read and after it, so that both were true at one moment.
   */
  const giveRefusals = async (refused: readonly Refused[], states: States, again: Waiting[]): Promise<void> => {
    const [byCapacity, others] = partition(refused, ({ refusal }) => capacityReasons.has(refusal.reason));
    for (const { waiting, refusal } of others) waiting.reject(refusal);
    const now = await readStates(byCapacity.map(({ waiting }) => waiting));
    for (const { waiting, refusal } of byCapacity) {
      const isSame = consumersOf(waiting).every((uuid) => hasTheSame(states.get(uuid), now.get(uuid)));
      if (isSame) waiting.reject(refusal);
      else again.push(suspected(waiting));
    }
  };

  const write = async (judged: readonly Judged[], again: Waiting[]): Promise<void> => {
    if (judged.length === 0) return;
    let written: WrittenClaims;
    try {
      written = await writeClaims(
        database,
        judged.map(({ write }) => write),
        fleet.moment.serverRun,
        expectingOthers > 0 && judged.every(isForeseeable)
          ? { since: fleet.moment, known: fleet.foreseen, rooms: roomsOf(judged) }
          : undefined,
      );
    } catch (error) {
      stale = true;
      if (judged.length > 1 && hasSqlstate(error, sqlstate.lockNotAvailable)) {
        again.push(...parted(judged.map(({ waiting }) => waiting)));
        return;
      }
      if (!hasSqlstate(error, sqlstate.uniqueViolation) && !isLostRace(error)) throw error;
      // Nothing of the batch was written, and all are judged again. A unique violation says that a consumer that should be
      // new is there: the race is one of those who wanted to make one.
      const isNeighbour = ({ consumers }: ClaimWrite) =>
        !isLostRace(error) && consumers.every(({ generation }) => generation !== null);
      for (const { waiting, write } of judged) {
        if (isNeighbour(write)) again.push(waiting);
        else again.push(...afterLostRace({ ...waiting, readsConsumers: true }));
      }
      return;
    }
    const { lost, xid, isContested } = written;
    expectingOthers = isContested ? expectedAfterwards : Math.max(0, expectingOthers - 1);
    // So that there is little to be let pass. Nobody waits for it: where the database is away, the next write will tell.
    if (isContested && fleet.ageSeconds() > contestedAgeSeconds) fleet.fresh().catch(() => {});
    const won = judged.filter((_, place) => lost[place] === undefined);
    if (won.every(isForeseeable)) fleet.foresee({ xid, effects: won.flatMap(effectsOf) });
    stale ||= lost.some((guard) => guard !== undefined && guard !== 'owner') || !won.every(isForeseeable);
    const ownerless = judged.filter((_, place) => lost[place] === 'owner');
    judged.forEach(({ waiting }, place) => {
      const guard = lost[place];
      if (guard === undefined) waiting.resolve();
      else if (guard !== 'owner') {
        again.push(...afterLostRace(guard === 'consumer' ? { ...waiting, readsConsumers: true } : waiting));
      }
    });
    if (ownerless.length === 0) return;
    await ensureOwnersOf(ownerless);
    again.push(...ownerless.map(({ waiting }) => waiting));
  };

  /** The claim as it goes again; nothing where it lost too often. */
  const afterLostRace = (waiting: Waiting): Waiting[] => {
    if (waiting.lostRaces >= options.conflictRetryCount) {
      waiting.reject(
        new ClaimRefused(
          'concurrent update',
          'Another thread concurrently updated the resource provider data. Please retry your update',
        ),
      );
      return [];
    }
    options.onRetry?.();
    return [{ ...waiting, lostRaces: waiting.lostRaces + 1, refusedOnce: false }];
  };

  const ensureOwnersOf = async (judged: readonly Judged[]): Promise<void> => {
    const consumers = judged.flatMap(({ write }) => write.consumers);
    const named = {
      projects: consumers.map(({ projectExternalId }) => projectExternalId),
      users: consumers.map(({ userExternalId }) => userExternalId),
      types: consumers.flatMap(({ consumerType }) => consumerType ?? []),
    };
    await repeatLostRaces(() => ensureOwners(database, named));
  };

  /** Never rejects. */
  const processAndTell = async (batch: readonly Waiting[]): Promise<void> => {
    const again: Waiting[] = [];
    const askedBy = batch.flatMap((waiting) => waiting.askedBy);
    await onBehalfOf(askedBy, () => processBatch(batch, again)).catch(async (error: unknown) => {
      // Those that were answered are not concerned: a promise is settled once.
      const going = new Set(again.map(({ resolve }) => resolve));
      for (const { resolve, reject } of batch) if (!going.has(resolve)) reject(error);
      if (isTimedOut(error)) await refuseWhoNeedsLocked(batch, error);
    });
    queue.unshift(...again);
  };

  /** Of those who were parted from one in vain: while it is asked what is locked, none of them goes. */
  const refuseWhoNeedsLocked = async (inVain: readonly Waiting[], error: unknown): Promise<void> => {
    const concernsIt = concerning(inVain);
    const concerned = queue.filter((waiting) => waiting.alone && concernsIt(waiting));
    if (concerned.length === 0) return;
    const rows = rowsOf(concerned);
    // Where even that takes too long, all may be locked.
    const needsLocked = needing(await findLastingLocks(database, rows).catch(() => rows));
    queue = refuseParted(queue, (waiting) => concernsIt(waiting) && needsLocked(waiting), error);
  };

  const isAloneNext = takingTurns();
  const wake = inTurn(
    database,
    (heldUp: readonly (readonly Waiting[])[]) => {
      const { batch, later } = takeBatch(queue, heldUp, isAloneNext);
      queue = later;
      return batch.length > 0 ? batch : undefined;
    },
    processAndTell,
  );

  return {
    write: (claim) =>
      new Promise((resolve, reject) => {
        const readsConsumers = claim.consumers.some(
          ({ knownGeneration, allocations, expected }) =>
            knownGeneration !== null || allocations.size === 0 || expected !== undefined,
        );
        queue.push({
          claim,
          askedBy: requestsServed(),
          readsConsumers,
          refusedOnce: false,
          lostRaces: 0,
          alone: false,
          resolve,
          reject,
        });
        wake();
      }),
  };
}

/** Refusals that compare the fleet with what the consumers have. */
const capacityReasons: ReadonlySet<string> = new Set<RefusalReason>(['invalid inventory', 'inventory in use']);

const isByTag = ({ claim }: Waiting): boolean => claim.consumers.some(({ expected }) => expected !== undefined);

/** Whether a claim keeps the consumer's type, which its entity tag is of, or was sent for one tag of owner and type and all. */
const needsOwner = ({ claim }: Waiting): boolean =>
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);

const hasTheSame = (a: ConsumerState | undefined, b: ConsumerState | undefined): boolean =>
  a?.generation === b?.generation && isDeepStrictEqual(a?.allocations, b?.allocations);

function partition<Value>(values: readonly Value[], isFirst: (value: Value) => boolean): [Value[], Value[]] {
  return [values.filter(isFirst), values.filter((value) => !isFirst(value))];
}
