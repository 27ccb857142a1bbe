import type { Gathered, Gathering, Offered } from '../metrics/gathering.ts';
import type { FromWorker } from './messages.ts';

/** The part of a worker in collecting the metrics of all processes. A scrape may reach any worker. */
export type WorkerGathering = Gathering & {
  /** Sends the metrics of this worker to the primary. */
  tellOwn(id: number): void;
  /** Finds out how many of each shape fit, and tells the primary. */
  tellShapes(id: number): void;
  /** Takes the metrics of all processes from the primary. */
  gathered(id: number, gathered: Gathered): void;
};

/** @param worker the number of this worker, from 1 */
export function openGathering(worker: number, tell: (message: FromWorker) => void): WorkerGathering {
  const waiting = new Map<number, (gathered: Gathered | Promise<Gathered>) => void>();
  let lastId = 0;
  let own: Offered = { figures: async () => [], shapes: async () => '' };
  // Without the primary the metrics of all cannot be collected. A scrape then gets the metrics of this worker alone.
  const alone = async (): Promise<Gathered> => ({
    figures: [await own.figures()],
    shapes: await own.shapes().catch(() => ''),
  });
  process.on('disconnect', () => {
    for (const resolve of waiting.values()) resolve(alone());
    waiting.clear();
  });
  return {
    labels: { worker: String(worker) },
    offer: (offered) => {
      own = offered;
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
      own.figures().then(
        (figures) => tell({ kind: 'figures', id, figures }),
        () => tell({ kind: 'figures', id, figures: [] }),
      );
    },
    tellShapes: (id) => {
      own.shapes().then(
        (text) => tell({ kind: 'shapes', id, text }),
        () => tell({ kind: 'shapes', id, text: undefined }),
      );
    },
    gathered: (id, gathered) => {
      waiting.get(id)?.(gathered);
      waiting.delete(id);
    },
  };
}
