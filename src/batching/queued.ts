import type { RequestIds } from '../log/request_ids.ts';
import type { Entry } from './batches.ts';
import type { Candidate } from './take_batch.ts';

/**
 * How likely an item is the cause of the failure of its batch. Items with the same suspicion are repeated together, beside
 * the batches of the items without suspicion: first in a part of the failed batch; then alone; then alone after all its
 * keys were waited for, though the database did not name them as locked.
 */
export type Suspicion = (typeof suspicions)[number] | 'none';
/** In the order of repetition: those with the least suspicion are tried first, since most of them have caused nothing. */
export const suspicions = ['in a part', 'alone', 'alone with free keys'] as const;

/** An item from the time it was asked for until it is settled. */
export type Queued<Item, Result> = Entry<Item, Result> &
  Candidate & {
    item: Item;
    share: number;
    suspicion: Suspicion;
    /** How often a locked key explained that the item was refused a lock, since its suspicion was last raised. */
    explained: number;
    isReady: boolean;
    state: 'queued' | 'under way' | 'again' | 'settled';
    readonly askedBy: readonly RequestIds[];
    readonly cameAtMs: number;
    /** Runs when the time of the item is over. */
    expiry: NodeJS.Timeout | undefined;
    /** Rejects the item in any state. */
    readonly refuse: (error: unknown) => void;
  };

/** What the queue is told about one of its items. */
type Listeners<Item, Result> = {
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
  /** The item was settled for the first time. */
  onSettled(queued: Queued<Item, Result>): void;
  /** What the item waited for is there. */
  onReady(): void;
  /** What the item waited for has failed. */
  giveUp(queued: Queued<Item, Result>, error: unknown): void;
};

export const isUnderWay = ({ state }: { readonly state: string }): boolean => state === 'under way';

/** Makes an item of a queue. Only while it is under way can it be resolved, rejected or put back. */
export function openQueued<Item, Result>(
  asked: Pick<Queued<Item, Result>, 'item' | 'order' | 'share' | 'askedBy'>,
  { resolve, reject, onSettled, onReady, giveUp }: Listeners<Item, Result>,
): Queued<Item, Result> {
  const settle = (): void => {
    if (queued.state !== 'settled') onSettled(queued);
    queued.state = 'settled';
    clearTimeout(queued.expiry);
  };
  const waitFor = async (after: Promise<unknown>): Promise<void> => {
    queued.isReady = false;
    try {
      await after;
    } catch (error) {
      giveUp(queued, error);
      return;
    }
    queued.isReady = true;
    onReady();
  };
  const queued: Queued<Item, Result> = {
    ...asked,
    suspicion: 'none',
    explained: 0,
    isReady: true,
    state: 'queued',
    cameAtMs: performance.now(),
    expiry: undefined,
    resolve: (result) => {
      if (!isUnderWay(queued)) return;
      settle();
      resolve(result);
    },
    reject: (error) => {
      if (isUnderWay(queued)) queued.refuse(error);
    },
    refuse: (error) => {
      settle();
      reject(error);
    },
    again: (next = queued.item, after = undefined) => {
      if (!isUnderWay(queued)) return;
      queued.state = 'again';
      queued.item = next;
      if (after !== undefined) void waitFor(after);
    },
  };
  return queued;
}
