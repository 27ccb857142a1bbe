import type { BatchOptions, Entry } from './items.ts';

/** The batch that is prepared while the one before it is performed, if there is one. */
export type WorkAhead<Item, Waiting> = {
  /** A batch is performed from now on. */
  begin(): void;
  /** The batch is not waited for any more. @returns the batch that was prepared meanwhile; empty if there is none */
  end(): readonly Waiting[];
  /** An item came. If it is worth it, the next batch is gathered and prepared. */
  notice(item: Item): void;
  /** Drops what was prepared. @returns the items that must go back to the queue */
  drop(): readonly Waiting[];
  isReady(): boolean;
};

/**
 * @param options.ahead without it nothing is prepared
 * @param queue.gather resolves when the requests that wait were read
 * @param queue.waiting the items in the queue
 * @param queue.next the next batch as it would be now; none of its items waits for one that is being performed
 * @param queue.start takes a batch from the queue
 */
export function openWorkAhead<Item, Result, Waiting extends Entry<Item, Result>>(
  { ahead }: Pick<BatchOptions<Item, Result>, 'ahead'>,
  queue: {
    gather(): Promise<void>;
    waiting(): readonly Waiting[];
    next(): readonly Waiting[];
    start(batch: readonly Waiting[]): void;
  },
): WorkAhead<Item, Waiting> {
  let isPerforming = false;
  let isGathering = false;
  let ready: readonly Waiting[] = [];

  const prepareNext = async (): Promise<void> => {
    if (isGathering || ready.length > 0) return;
    isGathering = true;
    await queue.gather();
    isGathering = false;
    if (!isPerforming) return;
    const batch = queue.next();
    if (batch.length === 0 || ahead?.prepare(batch) !== true) return;
    queue.start(batch);
    ready = batch;
  };
  const drop = (): readonly Waiting[] => {
    const dropped = ready;
    ready = [];
    return dropped;
  };
  return {
    begin: () => {
      isPerforming = true;
      if (ahead !== undefined && queue.waiting().some(({ item }) => ahead.isWorthIt(item))) void prepareNext();
    },
    end: () => {
      isPerforming = false;
      return drop();
    },
    notice: (item) => {
      if (isPerforming && ahead?.isWorthIt(item)) void prepareNext();
    },
    drop,
    isReady: () => ready.length > 0,
  };
}
