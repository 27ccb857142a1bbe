import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused, type LockWait } from '../../db/engine/slow_lane.ts';
import { hasSqlstate, isLostRace, isUnstorable, sqlstate } from '../../db/engine/sqlstate.ts';
import { type WriteOptions, type WrittenClaims, writeClaims } from '../../db/statements/claims/write_claims.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { concurrentlyUpdated } from '../rest/errors.ts';
import { ClaimRefused } from './claim.ts';
import { effectsOf, isForeseeable, type Judged, roomsOf } from './effects.ts';
import { outcomeOf } from './outcome.ts';
import type { Owners } from './owners.ts';
import type { Staleness } from './staleness.ts';

/** How patient claims are with others. */
export type BatchWriterOptions = {
  /** How often a claim that lost a race is judged again before it is refused. */
  readonly conflictRetryCount: number;
  /** Is told of each such race. */
  readonly onRetry?: () => void;
};

/** While others claim on the same providers the fleet is kept no older: every batch reads in the log what they did since. */
const contestedAgeSeconds = 0.02;

/** What was met once is expected for so many batches. */
const expectedAfterwards = 8;

/** How often a batch is sent again where a consumer that should be new has a record, before each claim is judged again. */
const sendsAgain = 3;

/**
 * @returns a function that writes judged claims by one statement, tells those that are written, and puts back those that lost a
 *   guard. It throws where the database fails: then nothing of what it has not settled was done.
 */
export function openBatchWriter(
  database: Database,
  fleet: FleetKeeper,
  staleness: Staleness,
  owners: Owners,
  { conflictRetryCount, onRetry }: BatchWriterOptions,
): (judged: readonly Judged[], wait: LockWait) => Promise<void> {
  /** How many more batches expect that others change their providers meanwhile: they lock them first, and give leeway. */
  let expectingOthers = 0;
  /** How many more batches expect consumers that should be new, and have a record. */
  let expectingRecords = 0;

  /** What the claims were judged by, which must be taken down before anything is awaited: a refresh may change it. */
  const judgedBy = (judged: readonly Judged[]): Pick<WriteOptions, 'judgedOn' | 'leeway'> => ({
    judgedOn: fleet.moment,
    leeway:
      expectingOthers > 0 && judged.every(isForeseeable)
        ? { since: fleet.moment, known: fleet.foreseen, rooms: roomsOf(judged) }
        : undefined,
  });

  /** A consumer that should be new and is there fails the whole batch once; sent again, only its own claim loses a guard. */
  const send = async (judged: readonly Judged[], wait: LockWait): Promise<WrittenClaims> => {
    const by = judgedBy(judged);
    const writes = judged.map(({ write }) => write);
    expectingRecords = Math.max(0, expectingRecords - 1);
    for (let sent = 1; ; sent += 1) {
      try {
        return await writeClaims(database, writes, { ...by, wait, mayExist: expectingRecords > 0 });
      } catch (error) {
        if (!hasSqlstate(error, sqlstate.uniqueViolation) || sent > sendsAgain) throw error;
        expectingRecords = expectedAfterwards;
      }
    }
  };

  /** Nothing of the batch was written. @throws the error where judging again is no use. */
  const afterFailure = (judged: readonly Judged[], error: unknown): void => {
    if (isLockRefused(error) || isUnstorable(error)) throw error;
    staleness.suspect();
    if (!hasSqlstate(error, sqlstate.uniqueViolation) && !isLostRace(error)) throw error;
    for (const each of judged) afterLostRace(each, { readsConsumers: true });
  };

  /** Judges the claim again, unless it lost too often. */
  const afterLostRace = ({ entry }: Judged, { readsConsumers }: { readonly readsConsumers: boolean }): void => {
    const { item } = entry;
    if (item.lostRaces >= conflictRetryCount) {
      entry.reject(new ClaimRefused('concurrent update', concurrentlyUpdated));
      return;
    }
    onRetry?.();
    entry.again({
      ...item,
      readsConsumers: item.readsConsumers || readsConsumers,
      lostRaces: item.lostRaces + 1,
      judgedOn: 'known fleet',
    });
  };

  /** Lets the fleet show what was written, and takes note of what others do to the same providers. */
  const learn = (judged: readonly Judged[], { lost, xid, isContested }: WrittenClaims): void => {
    expectingOthers = isContested ? expectedAfterwards : Math.max(0, expectingOthers - 1);
    // So that there is little to be let pass. No request waits for it: where the database is away, the next write will tell.
    if (isContested && fleet.ageSeconds() > contestedAgeSeconds) fleet.fresh().catch(() => {});
    const won = judged.filter((_, place) => lost[place] === undefined);
    const isShown = won.every(isForeseeable) && fleet.foresee({ xid, effects: won.flatMap(effectsOf) });
    if (!isShown) staleness.suspect();
    if (lost.some((guard) => guard !== undefined && guard !== 'owner')) staleness.suspect();
  };

  return async (judged, wait) => {
    if (judged.length === 0) return;
    let written: WrittenClaims;
    try {
      written = await send(judged, wait);
    } catch (error) {
      afterFailure(judged, error);
      return;
    }
    learn(judged, written);
    judged.forEach((each, place) => {
      const { entry, write } = each;
      const guard = written.lost[place];
      if (guard === undefined) entry.resolve(outcomeOf(each, written.generations));
      // Its owners are made beside the batches of claims, which never wait for them.
      else if (guard === 'owner') entry.again(entry.item, owners.ensure(write));
      else afterLostRace(each, { readsConsumers: guard === 'consumer' });
    });
  };
}
