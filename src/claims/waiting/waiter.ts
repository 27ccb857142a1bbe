import { hash } from 'node:crypto';
import type { LeavingClaim } from '../../../db/statements/claims/waiting.ts';
import type { Owner } from '../../placement/consumer.ts';
import type { ProjectLimits } from '../../placement/limits.ts';
import { ApiError, badRequest, conflict, errorCodes, tryLater } from '../../request/errors.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, type Precedence } from '../claim.ts';
import { canBePredicted, fitKey, type TakenAmount } from './would_take.ts';

/** How a claim waits. */
export type Wait = {
  /** For how long, in milliseconds. */
  readonly waitMs: number;
  /** The line of the project in which it waits for its turn; undefined without one. */
  readonly line: string | undefined;
  /** The owner of its first consumer, in the order of their UUIDs: the same if the consumers come again in another order. */
  readonly owner: Owner;
  /** The client, by which the seats are shared. */
  readonly client: string;
  /** Aborted when the client leaves. */
  readonly gone: AbortSignal;
  /** Authorizes the claim again when its turn comes. @throws ApiError 401 or 403 where the client may not make it any more */
  authorizeAgain(): Promise<Claim>;
};

/**
 * `entering`: the claim gets its number. `in line`: another claim of its line is ahead. `waiting`: the claim waits for room or for a
 * limit. `under way`: the claim is judged and written. `settled`: the claim is answered.
 */
type WaitState = 'entering' | 'in line' | 'waiting' | 'under way' | 'settled';

/** A claim that may wait, from its request to its answer. */
export type Waiter = {
  claim: Claim;
  readonly wait: Wait;
  /** The hash of its project and its consumers. */
  readonly key: string;
  /** Equal for claims that exceed the same limits, and fit on the same providers. */
  readonly kind: string;
  /** Whether fleet and limits alone tell if it can be written (would_take.ts). */
  readonly isPredictable: boolean;
  /** How many claims came to this process before it. */
  readonly index: number;
  readonly precedence: Precedence;
  /** When the wait began, by `performance.now()`; an earlier request for the same claim may have begun it. */
  sinceMs: number;
  /** When this request came, by `performance.now()`. */
  readonly cameAtMs: number;
  /** The same by the clock of the database, in whole milliseconds since 1970; null until it is first sent to be stored. */
  askedAtMs: number | null;
  readonly endsAtMs: number;
  /** Its number in its line. */
  number: number;
  state: WaitState;
  waitsFor: 'room' | 'limit';
  /** Why it was last refused, as GET /waiting shows it. */
  condition: string;
  /** Whether a row that it needs was locked when it was last to be written. */
  isHeldUp: boolean;
  /** Whether it has one of the seats. */
  hasSeat: boolean;
  /** Whether the database may have a row of the claim, also a row of an earlier request for the same claim. */
  mayHaveRow: boolean;
  /** Whether the database has a row of this claim, as far as this process knows. */
  isStored: boolean;
  /** Whether the row has the present condition of the claim. */
  isDescribed: boolean;
  /** What the claim would take, from the check by which it fits; undefined before. */
  promised: readonly TakenAmount[] | undefined;
  /** When it may be tried again at the earliest, if it waits for a limit. */
  notBeforeMs: number;
  /** When the claim was last found to exceed a limit. */
  exceededAtMs: number;
  /** The limits that it exceeded then; undefined if it was never found to exceed one. */
  exceededBy: ProjectLimits | undefined;
  /** How often in a row it was refused although it seemed to fit. */
  refusals: number;
  /** Whether the last check of the limits alone could not decide if the claim exceeds one of them. */
  mustBeJudged: boolean;
  /** The answer to a claim that is under way, if the claim is not written. */
  ending: { readonly error: unknown; readonly how: LeavingClaim['how'] } | undefined;
  isTimeOver: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly leave: () => void;
  readonly resolve: (outcome: ClaimOutcome) => void;
  readonly reject: (error: unknown) => void;
};

/** A claim that has just arrived. */
export function newWaiter(
  claim: Claim,
  wait: Wait,
  own: Pick<Waiter, 'index' | 'precedence' | 'leave' | 'resolve' | 'reject'>,
): Waiter {
  const nowMs = performance.now();
  return {
    ...own,
    claim,
    wait,
    key: keyOf(claim, wait),
    kind: kindOf(claim, wait, own.index),
    isPredictable: canBePredicted(claim),
    sinceMs: nowMs,
    cameAtMs: nowMs,
    askedAtMs: null,
    exceededAtMs: 0,
    exceededBy: undefined,
    endsAtMs: nowMs + wait.waitMs,
    number: 0,
    state: 'entering',
    waitsFor: 'room',
    condition: '',
    isHeldUp: false,
    hasSeat: false,
    mayHaveRow: false,
    isStored: false,
    isDescribed: true,
    promised: undefined,
    notBeforeMs: 0,
    ending: undefined,
    isTimeOver: false,
    refusals: 0,
    mustBeJudged: false,
    timer: undefined,
  };
}

/** A claim is known by its project and its consumers. */
const keyOf = ({ consumers }: Claim, { owner }: Wait): string =>
  hash('sha256', JSON.stringify([owner.projectId, inOrderOfUuids(consumers).map(({ uuid }) => uuid)]), 'hex');

/** The consumers of a claim, sorted by their UUIDs. */
export const inOrderOfUuids = (consumers: Claim['consumers']): Claim['consumers'] =>
  consumers.toSorted((one, other) => (one.uuid < other.uuid ? -1 : 1));

/** Different for each line of each project; the same for all claims without a line of a project. */
export const lineOf = ({ wait: { line, owner } }: Waiter): string => JSON.stringify([owner.projectId, line ?? null]);

const kindOf = (claim: Claim, { owner }: Wait, index: number): string =>
  JSON.stringify([owner.projectId, claim.consumers[0]?.consumerType, fitKey(claim) ?? index]);

/** Notes what a claim waits for now, as GET /waiting shows it. @param refusal what was thrown when it was judged */
export function noteCondition(waiter: Waiter, refusal: unknown): void {
  const condition = refusal instanceof Error ? refusal.message : '';
  waiter.isDescribed &&= waiter.condition === condition;
  waiter.condition = condition;
}

/*
 * How the wait of a claim ends.
 */

export const clientLeft = (): ApiError => badRequest('The client has left.');
export const takenOver = (): ApiError =>
  conflict('A later request for the same consumers waits in the place of this one.', errorCodes.concurrentUpdate);
export const waitEnded = (): ApiError =>
  conflict('The wait of the claim was ended by DELETE /waiting.', errorCodes.noCandidates);
/** The wait timed out before the turn of the claim came, or before the claim could be placed. */
export const timeRanOut = ({ wait: { line } }: Waiter): ClaimRefused =>
  new ClaimRefused(
    'no candidates',
    line === undefined
      ? 'The time of the claim is over.'
      : `The turn of the claim in line ${JSON.stringify(line)} has not come in this time.`,
  );
export const processEnds = (): ApiError =>
  tryLater(
    'The process ends. Ask again with the same consumers within 60 s: then the claim keeps its place in the line.',
    1 + Math.floor(Math.random() * 3),
  );
export const tooMany = ({ wait: { client } }: Waiter): ApiError =>
  new ApiError(
    429,
    `As many claims wait at this process as may ([placement] max_waiting), and there is no place for another one of ${client}. Please retry later.`,
    { headers: { 'retry-after': '5' } },
  );
