import type { Figures, Gathering } from '../metrics/gathering.ts';
import type { FromWorker } from './messages.ts';

/** The part of a worker in collecting the metrics of all processes. A scrape may reach any worker. */
export type WorkerGathering = Gathering & {
  /** Sends the metrics of this worker to the primary. */
  tellOwn(id: number): void;
  /** Takes the metrics of all processes from the primary. */
  gathered(id: number, figures: readonly Figures[]): void;
};

/** @param worker the number of this worker, from 1 */
export function openGathering(worker: number, tell: (message: FromWorker) => void): WorkerGathering {
  const waiting = new Map<number, (figures: readonly Figures[] | Promise<readonly Figures[]>) => void>();
  let lastId = 0;
  let own = async (): Promise<Figures> => [];
  // Without the primary the metrics of all cannot be collected. A scrape then gets the metrics of this worker alone.
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
      // An error here must not end the process. The metrics of this worker are left out then.
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
