import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { hasSqlstate, isLostRace, sqlstate } from '../../db/sqlstate.ts';
import type { ClaimWrite } from '../../db/statements/claim_write.ts';
import { ensureOwners } from '../../db/statements/ensure_owners.ts';
import type { Leeway } from '../../db/statements/others_claims.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/read_consumers.ts';
import { type WrittenClaims, writeClaims } from '../../db/statements/write_claims.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Effect } from '../fleet/own_writes.ts';
import type { Inventory } from '../fleet/provider.ts';
import { exactCapacity } from '../placement/inventory.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../request_ids.ts';
import { type Claim, ClaimRefused, type RefusalReason } from './claim.ts';
import { judge } from './judge.ts';
import type { Demand } from './judge_capacity.ts';

/** Writes claims; those that arrive while a write is under way go together in the next. */
export type Claims = {
  /** Resolves once the claim is written. @throws ClaimRefused */
  write(claim: Claim): Promise<void>;
};

/** A claim that waits to be written. */
type Waiting = {
  readonly claim: Claim;
  readonly askedBy: readonly RequestIds[];
  /** Whether the consumers' present state must be read: a claim for new consumers goes without, and the write proves it. */
  readonly readsConsumers: boolean;
  /** The refusal of a judgement on a picture that may have been old: given only if a fresh one repeats it. */
  readonly refusedOnce: boolean;
  readonly lostRaces: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

type Judged = { readonly waiting: Waiting; readonly write: ClaimWrite; readonly demands: readonly Demand[] };
type Refused = { readonly waiting: Waiting; readonly refusal: ClaimRefused };
type States = ReadonlyMap<string, ConsumerState>;

/** How many claims one statement takes: beyond this, waiting for the next costs less than a longer one. */
const batchLimit = 256;

/** While others claim on the same providers the fleet is kept no older: every batch reads in the log what they did since. */
const contestedAgeSeconds = 0.02;

export function openClaims(
  database: Database,
  fleet: FleetKeeper,
  options: { readonly conflictRetryCount: number; readonly onRetry?: () => void },
): Claims {
  let queue: Waiting[] = [];
  let running = false;
  /** Whether the fleet may lack something: what made a claim lose or be refused, or a write that it does not foresee. */
  let stale = false;
  /** Whether others changed the providers of the last batch, and so may of the next: it locks them first, and lets them. */
  let isContested = false;

  /**
   * The next claims, no two of which concern the same consumer: the later one must see what the earlier did. A claim that
   * brings inventories goes alone, since all others are judged by the inventories that are there.
   */
  const nextBatch = (): Waiting[] => {
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const taken = new Set<string>();
    let limit = batchLimit;
    for (const waiting of queue) {
      const uuids = uuidsOf(waiting);
      const goesAlone = waiting.claim.inventories.length > 0;
      if (batch.length >= (goesAlone ? 1 : limit) || uuids.some((uuid) => taken.has(uuid))) later.push(waiting);
      else batch.push(waiting);
      if (goesAlone) limit = 0;
      for (const uuid of uuids) taken.add(uuid);
    }
    queue = later;
    return batch;
  };

  const processBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const reading = readStates(batch.filter((waiting) => waiting.readsConsumers));
    // A refusal is only given on a fleet that is newer than what was read of the consumers: see giveRefusals.
    const mayRefuse = batch.some((waiting) => waiting.refusedOnce);
    if (mayRefuse) await reading;
    // Entity tags are of names, which no guard proves.
    const mustBeFresh = stale || mayRefuse || batch.some(isByTag);
    const [states] = await Promise.all([reading, mustBeFresh ? fleet.fresh() : undefined]);
    stale = false;
    const { judged, refused } = judgeAll(batch, states);
    const results = await Promise.allSettled([write(judged), giveRefusals(refused, states)]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  const readStates = async (batch: readonly Waiting[]): Promise<States> =>
    batch.length > 0
      ? repeatLostRaces(() => readConsumers(database, batch.flatMap(uuidsOf), batch.some(needsOwner)))
      : new Map();

  /** Judges a batch in order, each claim with what those before it promised to take. */
  const judgeAll = (batch: readonly Waiting[], states: States): { judged: Judged[]; refused: Refused[] } => {
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
        else if (!waiting.refusedOnce) suspect(waiting);
        // Others of the batch were promised what it wants, and may lose their guards yet: it is judged before the next.
        else if (promised.size > 0) queue.unshift(waiting);
        else refused.push({ waiting, refusal: error });
      }
    }
    return { judged, refused };
  };

  const suspect = (waiting: Waiting): void => {
    queue.unshift({ ...waiting, refusedOnce: true, readsConsumers: true });
    stale = true;
  };

  /**
   * Capacity is judged by the usage in the fleet less what the consumers have, which two statements read. The refusal holds
   * if the consumers have the same before the fleet was read and after it, so that both were true at one moment.
   */
  const giveRefusals = async (refused: readonly Refused[], states: States): Promise<void> => {
    const [byCapacity, others] = partition(refused, ({ refusal }) => capacityReasons.has(refusal.reason));
    for (const { waiting, refusal } of others) waiting.reject(refusal);
    const now = await readStates(byCapacity.map(({ waiting }) => waiting));
    for (const { waiting, refusal } of byCapacity) {
      const isSame = uuidsOf(waiting).every((uuid) => hasTheSame(states.get(uuid), now.get(uuid)));
      if (isSame) waiting.reject(refusal);
      else suspect(waiting);
    }
  };

  const write = async (judged: readonly Judged[]): Promise<void> => {
    if (judged.length === 0) return;
    let written: WrittenClaims;
    try {
      written = await writeClaims(
        database,
        judged.map(({ write }) => write),
        fleet.moment.serverRun,
        isContested && judged.every(isForeseeable)
          ? { since: fleet.moment, known: fleet.foreseen, rooms: roomsOf(judged) }
          : undefined,
      );
    } catch (error) {
      stale = true;
      if (!hasSqlstate(error, sqlstate.uniqueViolation) && !isLostRace(error)) throw error;
      // Nothing of the batch was written, and all are judged again. A unique violation says that a consumer that should be
      // new is there: the race is one of those who wanted to make one.
      const isNeighbour = ({ consumers }: ClaimWrite) =>
        !isLostRace(error) && consumers.every(({ generation }) => generation !== null);
      for (const { waiting, write } of judged) {
        if (isNeighbour(write)) queue.unshift(waiting);
        else tryAgain({ ...waiting, readsConsumers: true });
      }
      return;
    }
    const { lost, xid } = written;
    ({ isContested } = written);
    // So that there is little to be let pass. Nobody waits for it: where the database is away, the next write will tell.
    if (isContested && fleet.ageSeconds() > contestedAgeSeconds) fleet.fresh().catch(() => {});
    const won = judged.filter((_, place) => lost[place] === undefined);
    if (won.every(isForeseeable)) fleet.foresee({ xid, effects: won.flatMap(effectsOf) });
    stale ||= lost.some((guard) => guard !== undefined && guard !== 'owner') || !won.every(isForeseeable);
    const ownerless = judged.filter((_, place) => lost[place] === 'owner');
    judged.forEach(({ waiting }, place) => {
      const guard = lost[place];
      if (guard === undefined) waiting.resolve();
      else if (guard !== 'owner') tryAgain(guard === 'consumer' ? { ...waiting, readsConsumers: true } : waiting);
    });
    if (ownerless.length === 0) return;
    await ensureOwnersOf(ownerless);
    queue.unshift(...ownerless.map(({ waiting }) => waiting));
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
    options.onRetry?.();
    queue.unshift({ ...waiting, lostRaces: waiting.lostRaces + 1, refusedOnce: false });
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

  const run = async (): Promise<void> => {
    running = true;
    while (queue.length > 0) {
      await database.turn();
      const batch = nextBatch();
      const askedBy = batch.flatMap((waiting) => waiting.askedBy);
      await onBehalfOf(askedBy, () => processBatch(batch)).catch((error: unknown) => {
        // Those that were answered or wait again are not concerned: a promise is settled once.
        const waiting = new Set(queue.map(({ resolve }) => resolve));
        for (const each of batch) if (!waiting.has(each.resolve)) each.reject(error);
      });
    }
    running = false;
  };

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
          resolve,
          reject,
        });
        if (!running) void run();
      }),
  };
}

/** Whether all that a claim changes is in its effects: inventories are read anew. */
const isForeseeable = ({ write }: Judged): boolean => write.inventories.length === 0;

const effectsOf = ({ write, demands }: Judged): Effect[] => [
  ...write.providers.map(({ providerId, bump }) => ({ providerId, bump, used: [] })),
  ...demands.map(({ provider, classId, wanted, freed }) => ({
    providerId: provider.id,
    bump: 0,
    used: [{ classId, delta: wanted - freed }],
  })),
];

/** What the claims leave of what they take from. */
function roomsOf(judged: readonly Judged[]): Leeway['rooms'] {
  const rooms = new Map<Inventory, { providerId: number; classId: number; room: number }>();
  for (const { provider, classId, inventory, freed, wanted } of judged.flatMap(({ demands }) => demands)) {
    if (inventory === undefined || wanted === 0) continue;
    const known = rooms.get(inventory);
    const room = known?.room ?? exactCapacity(inventory) - inventory.used;
    rooms.set(inventory, { providerId: provider.id, classId, room: room - Math.max(0, wanted - freed) });
  }
  return [...rooms.values()];
}

/** Refusals that compare the fleet with what the consumers have. */
const capacityReasons: ReadonlySet<string> = new Set<RefusalReason>(['invalid inventory', 'inventory in use']);

const isByTag = ({ claim }: Waiting): boolean => claim.consumers.some(({ expected }) => expected !== undefined);

/** Whether a claim keeps the consumer's type, which its entity tag is of, or was sent for one tag of owner and type and all. */
const needsOwner = ({ claim }: Waiting): boolean =>
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);

const hasTheSame = (a: ConsumerState | undefined, b: ConsumerState | undefined): boolean =>
  a?.generation === b?.generation && isDeepStrictEqual(a?.allocations, b?.allocations);

const uuidsOf = ({ claim }: Waiting): string[] => claim.consumers.map(({ uuid }) => uuid);

function partition<Value>(values: readonly Value[], isFirst: (value: Value) => boolean): [Value[], Value[]] {
  return [values.filter(isFirst), values.filter((value) => !isFirst(value))];
}
