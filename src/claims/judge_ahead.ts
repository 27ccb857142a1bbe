import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { showEffects } from '../fleet/model/own_writes.ts';
import { effectsOf, isForeseeable, type Judged, judgeBatch, type Staleness } from './judge_batch.ts';
import type { BatchedClaim, PendingClaim } from './pending_claim.ts';

/**
 * A claim with this number of consumers by query, or more, is judged ahead: to judge it takes about as long as to write
 * it. A smaller claim is better written together with claims that come later.
 */
const fewestPlaced = 16;

/** Judges the next batch while one is being written, as if all claims of that one were written already. */
export type JudgeAhead = {
  /** Whether to judge a claim takes so long that it should be judged ahead. */
  isWorthIt(claim: PendingClaim): boolean;
  /** Judges a batch ahead. @returns false where that cannot be done, or where one of its claims is not allowed */
  prepare(batch: readonly BatchedClaim[]): boolean;
  /** What came of that, if all came as it was foreseen; undefined if the batch must be judged now. */
  outcomeFor(batch: readonly BatchedClaim[]): readonly Judged[] | undefined;
  /**
   * Notes that claims are being written.
   *
   * @param isWhole whether these are all claims of their batch; the others go again before any other batch
   * @returns to be called when that is done: whether all of them were written, and the known fleet shows them
   */
  noteWrite(judged: readonly Judged[], isWhole: boolean): (isAsForeseen: boolean) => void;
};

/** A batch that is being written, by which the next one may be judged. */
type Premise = { readonly judged: readonly Judged[]; canServe: boolean; isAsForeseen: boolean };

type Prepared = {
  readonly batch: readonly BatchedClaim[];
  readonly judged: readonly Judged[];
  readonly premise: Premise;
  readonly fleet: Fleet;
  readonly moment: FleetKeeper['moment'];
};

/** Opens it while no claim is being written. */
export function openJudgeAhead(fleet: FleetKeeper, staleness: Pick<Staleness, 'isSuspected'>): JudgeAhead {
  /** More than one where a batch takes long or is repeated in parts. */
  const underWay = new Set<Premise>();
  /** The batch whose write began last. */
  let latest: Premise | undefined;
  let prepared: Prepared | undefined;
  return {
    isWorthIt: ({ claim: { placing = [] } }) => placing.length >= fewestPlaced,
    prepare: (batch) => {
      const [premise] = underWay;
      const isKnown = premise !== undefined && underWay.size === 1 && premise.canServe && !staleness.isSuspected();
      if (!isKnown || !batch.every(canBeAhead)) return false;
      // Once is enough: a claim that finds no place now would find none again before that batch is written.
      premise.canServe = false;
      const { known, moment } = fleet;
      const written = { effects: premise.judged.flatMap(effectsOf) };
      showEffects(known, written, 1);
      try {
        const { judged } = judgeBatch(known, batch, new Map());
        if (judged.length < batch.length) return false;
        prepared = { batch, judged, premise, fleet: known, moment };
        return true;
      } finally {
        showEffects(known, written, -1);
      }
    },
    outcomeFor: (batch) => {
      const ahead = prepared;
      if (ahead?.batch !== batch) return undefined;
      prepared = undefined;
      // A refresh may have shown writes of other transactions.
      const isSame = ahead.fleet === fleet.known && ahead.moment === fleet.moment && !staleness.isSuspected();
      const isOnlyOne = ahead.premise === latest && underWay.size === 0;
      return isSame && isOnlyOne && ahead.premise.isAsForeseen ? ahead.judged : undefined;
    },
    noteWrite: (judged, isWhole) => {
      const premise = { judged, canServe: isWhole && judged.every(isForeseeable), isAsForeseen: false };
      latest = premise;
      underWay.add(premise);
      return (isAsForeseen) => {
        premise.isAsForeseen = isAsForeseen;
        underWay.delete(premise);
      };
    },
  };
}

/** Its consumers must not be read, nor the fleet be refreshed, before it is judged. */
const canBeAhead = ({ item }: BatchedClaim): boolean =>
  item.judgedOn === 'known fleet' && !item.readsConsumers && item.claim.inventories.length === 0;
