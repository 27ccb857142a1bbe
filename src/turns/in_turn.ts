import type { Database } from '../../db/connect.ts';

/** After so long, in milliseconds, a batch waits for somebody else, and the next begins beside it. */
const heldUpMs = 1_000;
/** So many are left to themselves at most: each holds a connection. */
export const heldUpLimit = 4;

/**
 * Performs batches one after the other. One that takes long, since somebody in the database holds what it needs, is left to
 * itself.
 *
 * @param take the next batch, given those that are held up: what would wait for the same is not to be in it. Undefined where
 *   there is nothing that can be done now
 * @param perform never rejects
 * @returns a function to be called when there is something to take
 */
export function inTurn<Batch>(
  { turn }: Pick<Database, 'turn'>,
  take: (heldUp: readonly Batch[]) => Batch | undefined,
  perform: (batch: Batch) => Promise<void>,
): () => void {
  const heldUp = new Set<Batch>();
  let running = false;

  const run = async (): Promise<void> => {
    running = true;
    for (;;) {
      await turn();
      const batch = take([...heldUp]);
      if (batch === undefined) break;
      const performed = perform(batch);
      if (heldUp.size >= heldUpLimit) await performed;
      else if (!(await endsWithin(performed, heldUpMs))) leave(batch, performed);
    }
    running = false;
  };

  const leave = (batch: Batch, performed: Promise<void>): void => {
    heldUp.add(batch);
    void performed.then(() => {
      heldUp.delete(batch);
      wake();
    });
  };

  const wake = (): void => {
    if (!running) void run();
  };
  return wake;
}

/** Whether work that never rejects ends in time; in any case it goes on. */
function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
