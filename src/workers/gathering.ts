import type { Figures, Gathering } from '../metrics/gathering.ts';
import type { FromWorker } from './messages.ts';

/** A worker's part in gathering the figures of all: a scrape comes to any one of them. */
export type WorkerGathering = Gathering & {
  /** Tells the primary the figures of this worker. */
  tellOwn(id: number): void;
  /** The primary has gathered those of all. */
  gathered(id: number, figures: readonly Figures[]): void;
};

/** @param worker the place of this worker, from 1 */
export function openGathering(worker: number, tell: (message: FromWorker) => void): WorkerGathering {
  const waiting = new Map<number, (figures: readonly Figures[] | Promise<readonly Figures[]>) => void>();
  let lastId = 0;
  let own = async (): Promise<Figures> => [];
  // Without the primary nobody gathers any more; a scrape then has the figures of this worker alone.
  const alone = async (): Promise<readonly Figures[]> => [await own()];
  process.on('disconnect', () => {
    for (const resolve of waiting.values()) resolve(alone());
    waiting.clear();
  });
  return {
    labels: { worker: String(worker) },
    offer: (figures) => {
      own = figures;
    },
    gather: () =>
      new Promise((resolve) => {
        if (!process.connected) {
          resolve(alone());
          return;
        }
        lastId += 1;
        waiting.set(lastId, resolve);
        tell({ kind: 'gatherFigures', id: lastId });
      }),
    tellOwn: (id) => {
      // Figures that cannot be told are left out, and must not end the process.
      own().then(
        (figures) => tell({ kind: 'figures', id, figures }),
        () => tell({ kind: 'figures', id, figures: [] }),
      );
    },
    gathered: (id, figures) => {
      waiting.get(id)?.(figures);
      waiting.delete(id);
    },
  };
}
