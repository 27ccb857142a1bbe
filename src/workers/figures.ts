import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Registry } from 'prom-client';
import { atIntervals, type Figures, type Gathered, type Gathering, type Offered } from '../metrics/gathering.ts';
import { registerGauges } from '../metrics/gauges.ts';
import { ask } from './ask.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** The metrics of the primary process, and the collection of the metrics of its workers. */
type WorkerFigures = {
  /** Answers this worker whenever it asks for the metrics of all processes. */
  answer(worker: ChildProcess): void;
  countRestart(): void;
};

/**
 * A worker that does not send its metrics within this time is left out: Prometheus has its own time-out, usually 10 s.
 */
const patienceMs = 3_000;

/** How long a worker may take to find out about all shapes: one usually takes less than a tenth of a second. */
const shapesPatienceMs = 30_000;

/**
 * @param serving the workers that serve at the moment
 * @param shapesIntervalMs one of them finds out how many of each shape fit, at most once in this time
 */
export function openWorkerFigures(serving: () => readonly ChildProcess[], shapesIntervalMs: number): WorkerFigures {
  const register = new Registry();
  registerGauges(register, [['placement_workers', 'Worker processes that serve.', () => serving().length]]);
  const restarts = new Counter({
    name: 'placement_worker_restarts_total',
    help: 'Worker processes that ended and were replaced.',
    registers: [register],
  });

  const figuresOf = async (worker: ChildProcess): Promise<Figures> =>
    (
      await ask(
        worker,
        (id) => ({ kind: 'tellFigures', id }),
        (message) => message.kind === 'figures',
        patienceMs,
      )
    )?.figures ?? [];
  let shapesBefore = '';
  /** The first worker that can finds out about the shapes, for all. */
  const shapesNow = atIntervals(shapesIntervalMs, async (): Promise<string> => {
    for (const worker of serving()) {
      const answer = await ask(
        worker,
        (id) => ({ kind: 'tellShapes', id }),
        (message) => message.kind === 'shapes',
        shapesPatienceMs,
      );
      if (answer?.text === undefined) continue;
      shapesBefore = answer.text;
      return answer.text;
    }
    throw new Error('No worker could tell how many of each shape fit.');
  });
  /** A scrape does not wait longer for the shapes than for the rest; else it has what was found out before. */
  const shapesInTime = (): Promise<string> =>
    Promise.race([shapesNow().catch(() => ''), sleep(patienceMs, undefined, { ref: false }).then(() => shapesBefore)]);

  return {
    answer: (worker) => {
      worker.on('message', async (message: FromWorker) => {
        if (message.kind !== 'gatherFigures') return;
        const [figures, shapes] = await Promise.all([
          Promise.all([register.getMetricsAsJSON(), ...serving().map(figuresOf)]),
          shapesInTime(),
        ]);
        if (!worker.connected) return;
        worker.send({ kind: 'figuresOfAll', id: message.id, figures, shapes } satisfies ToWorker, () => {});
      });
    },
    countRestart: () => restarts.inc(),
  };
}

/** The part of a worker in collecting the metrics of all processes. A scrape may reach any worker. */
type WorkerGathering = Gathering & {
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
