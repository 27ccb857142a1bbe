import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Registry } from 'prom-client';
import { atIntervals, type Figures, type Gathered, type Gathering, type MetricSources } from '../metrics/gathering.ts';
import { registerGauges } from '../metrics/gauges.ts';
import { ask } from './ask.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** The metrics of the primary process, and the collection of the metrics of its workers. */
type WorkerFigures = {
  /** Answers this worker whenever it requests the metrics of all processes. */
  answer(worker: ChildProcess): void;
  countRestart(): void;
};

/**
 * A worker that does not send its metrics within this time is left out: Prometheus times out, too, usually after 10 s.
 */
const timeoutMs = 3_000;

/** How long a worker may take to count all shapes: one shape usually takes less than a tenth of a second. */
const shapesTimeoutMs = 30_000;

/**
 * @param serving the workers that serve at the moment
 * @param shapesIntervalMs one of them counts how many of each shape fit, at most once in this time
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
        (id) => ({ kind: 'reportFigures', id }),
        (message) => message.kind === 'figures',
        timeoutMs,
      )
    )?.figures ?? [];
  let shapesBefore = '';
  /** One worker counts the shapes, for all: the first one that can. */
  const shapesNow = atIntervals(shapesIntervalMs, async (): Promise<string> => {
    for (const worker of serving()) {
      const answer = await ask(
        worker,
        (id) => ({ kind: 'reportShapes', id }),
        (message) => message.kind === 'shapes',
        shapesTimeoutMs,
      );
      if (answer?.text === undefined) continue;
      shapesBefore = answer.text;
      return answer.text;
    }
    throw new Error('No worker could count how many of each shape fit.');
  });
  /** A scrape waits no longer for the shapes than for other metrics; if they are late, it gets the counts of the scrape before. */
  const shapesInTime = (): Promise<string> =>
    Promise.race([shapesNow().catch(() => ''), sleep(timeoutMs, undefined, { ref: false }).then(() => shapesBefore)]);

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
  sendFigures(id: number): void;
  /** Counts how many of each shape fit, and sends that to the primary. */
  reportShapes(id: number): void;
  /** Takes the metrics of all processes from the primary. */
  receive(id: number, gathered: Gathered): void;
};

/** @param worker the number of this worker, from 1 */
export function openGathering(worker: number, send: (message: FromWorker) => void): WorkerGathering {
  const waiting = new Map<number, (gathered: Gathered | Promise<Gathered>) => void>();
  let lastId = 0;
  let own: MetricSources = { figures: async () => [], shapes: async () => '' };
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
    setSources: (sources) => {
      own = sources;
    },
    gather: () =>
      new Promise((resolve) => {
        if (!process.connected) {
          resolve(alone());
          return;
        }
        lastId += 1;
        waiting.set(lastId, resolve);
        send({ kind: 'gatherFigures', id: lastId });
      }),
    sendFigures: (id) => {
      // An error here must not end the process. The metrics of this worker are left out then.
      own.figures().then(
        (figures) => send({ kind: 'figures', id, figures }),
        () => send({ kind: 'figures', id, figures: [] }),
      );
    },
    reportShapes: (id) => {
      own.shapes().then(
        (text) => send({ kind: 'shapes', id, text }),
        () => send({ kind: 'shapes', id, text: undefined }),
      );
    },
    receive: (id, gathered) => {
      waiting.get(id)?.(gathered);
      waiting.delete(id);
    },
  };
}
