import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { hasSqlstate, isLostRace, isUnstorable, sqlstate } from '../../db/sqlstate.ts';
import type { ClaimWrite } from '../../db/statements/claim_write.ts';
import { ensureOwners } from '../../db/statements/ensure_owners.ts';
import { type WrittenClaims, writeClaims } from '../../db/statements/write_claims.ts';
import { concurrentlyUpdated } from '../errors.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { parted } from '../turns/parting.ts';
import { ClaimRefused } from './claim.ts';
import { effectsOf, isForeseeable, type Judged, roomsOf } from './effects.ts';
import type { Staleness } from './staleness.ts';
import type { Waiting } from './waiting.ts';

/** How patient claims are with others. */
export type BatchWriterOptions = {
  /** How often a claim that lost a race is judged again before it is refused. */
  readonly conflictRetryCount: number;
  /** Is told of each such race. */
  readonly onRetry?: () => void;
};

/** While others claim on the same providers the fleet is kept no older: every batch reads in the log what they did since. */
const contestedAgeSeconds = 0.02;

/** Who met others on a provider expects them for so many batches: a batch that gives no leeway in vain is judged twice. */
const expectedAfterwards = 8;

/**
 * @returns a function that writes judged claims by one statement, tells those that are written, and adds those that lost a guard
 *   to `again`. It throws where the database fails: then those that are not in `again` are to be told.
 */
export function openBatchWriter(
  database: Database,
  fleet: FleetKeeper,
  staleness: Staleness,
  { conflictRetryCount, onRetry }: BatchWriterOptions,
): (judged: readonly Judged[], again: Waiting[]) => Promise<void> {
  /** How many more batches expect that others change their providers meanwhile: they lock them first, and give leeway. */
  let expectingOthers = 0;

  const send = (judged: readonly Judged[]): Promise<WrittenClaims> =>
    writeClaims(
      database,
      judged.map(({ write }) => write),
      fleet.moment.serverRun,
      expectingOthers > 0 && judged.every(isForeseeable)
        ? { since: fleet.moment, known: fleet.foreseen, rooms: roomsOf(judged) }
        : undefined,
    );

  /** Nothing of the batch was written. @returns those that go again. @throws the error where that is no use. */
  const afterFailure = (judged: readonly Judged[], error: unknown): readonly Waiting[] => {
    staleness.suspect();
    if (judged.length > 1 && (hasSqlstate(error, sqlstate.lockNotAvailable) || isUnstorable(error))) {
      return parted(judged.map(({ waiting }) => waiting));
    }
    if (!hasSqlstate(error, sqlstate.uniqueViolation) && !isLostRace(error)) throw error;
    // A unique violation says that a consumer that should be new is there: the race is one of those who wanted to make one.
    const isNeighbour = ({ consumers }: ClaimWrite) =>
      !isLostRace(error) && consumers.every(({ generation }) => generation !== null);
    return judged.flatMap(({ waiting, write }) =>
      isNeighbour(write) ? [waiting] : afterLostRace({ ...waiting, readsConsumers: true }),
    );
  };

  /** The claim as it goes again; nothing where it lost too often. */
  const afterLostRace = (waiting: Waiting): readonly Waiting[] => {
    if (waiting.lostRaces >= conflictRetryCount) {
      waiting.reject(new ClaimRefused('concurrent update', concurrentlyUpdated));
      return [];
    }
    onRetry?.();
    return [{ ...waiting, lostRaces: waiting.lostRaces + 1, refusedOnce: false }];
  };

  /** Lets the fleet show what was written, and takes note of what others do to the same providers. */
  const learn = (judged: readonly Judged[], { lost, xid, isContested }: WrittenClaims): void => {
    expectingOthers = isContested ? expectedAfterwards : Math.max(0, expectingOthers - 1);
    // So that there is little to be let pass. Nobody waits for it: where the database is away, the next write will tell.
    if (isContested && fleet.ageSeconds() > contestedAgeSeconds) fleet.fresh().catch(() => {});
    const won = judged.filter((_, place) => lost[place] === undefined);
    if (won.every(isForeseeable)) fleet.foresee({ xid, effects: won.flatMap(effectsOf) });
    else staleness.suspect();
    if (lost.some((guard) => guard !== undefined && guard !== 'owner')) staleness.suspect();
  };

  return async (judged, again) => {
    if (judged.length === 0) return;
    let written: WrittenClaims;
    try {
      written = await send(judged);
    } catch (error) {
      again.push(...afterFailure(judged, error));
      return;
    }
    learn(judged, written);
    const { lost } = written;
    judged.forEach(({ waiting }, place) => {
      const guard = lost[place];
      if (guard === undefined) waiting.resolve();
      else if (guard === 'consumer') again.push(...afterLostRace({ ...waiting, readsConsumers: true }));
      else if (guard !== 'owner') again.push(...afterLostRace(waiting));
    });
    const ownerless = judged.filter((_, place) => lost[place] === 'owner');
    if (ownerless.length === 0) return;
    try {
      await ensureOwnersOf(database, ownerless);
      again.push(...ownerless.map(({ waiting }) => waiting));
    } catch (error) {
      again.push(...afterFailure(ownerless, error));
    }
  };
}

function ensureOwnersOf(database: Database, judged: readonly Judged[]): Promise<void> {
  const consumers = judged.flatMap(({ write }) => write.consumers);
  const named = {
    projects: consumers.map(({ projectExternalId }) => projectExternalId),
    users: consumers.map(({ userExternalId }) => userExternalId),
    types: consumers.flatMap(({ consumerType }) => consumerType ?? []),
  };
  return repeatLostRaces(() => ensureOwners(database, named));
}
