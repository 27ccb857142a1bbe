import type { ChildProcess } from 'node:child_process';
import { Counter, Gauge, Registry } from 'prom-client';
import type { Figures } from '../metrics/gathering.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** The metrics of the primary process, and the collection of the metrics of its workers. */
export type WorkerFigures = {
  /** Answers this worker whenever it asks for the metrics of all processes. */
  answer(worker: ChildProcess): void;
  countRestart(): void;
};

/**
 * A worker that does not send its metrics within this time is left out: Prometheus has its own time-out, usually 10 s.
 */
const patienceMs = 3_000;

/** @param serving the workers that serve at the moment */
export function openWorkerFigures(serving: () => readonly ChildProcess[]): WorkerFigures {
  const register = new Registry();
  const registers = [register];
  new Gauge({
    name: 'placement_workers',
    help: 'Worker processes that serve.',
    registers,
    collect() {
      this.set(serving().length);
    },
  });
  const restarts = new Counter({
    name: 'placement_worker_restarts_total',
    help: 'Worker processes that ended and were replaced.',
    registers,
  });

  let lastId = 0;
  const figuresOf = (worker: ChildProcess): Promise<Figures> =>
    new Promise((resolve) => {
      lastId += 1;
      const id = lastId;
      const settle = (figures: Figures): void => {
        clearTimeout(timer);
        worker.off('message', hear).off('exit', leftOut);
        resolve(figures);
      };
      const leftOut = (): void => settle([]);
      const hear = (message: FromWorker): void => {
        if (message.kind === 'figures' && message.id === id) settle(message.figures);
      };
      const timer = setTimeout(leftOut, patienceMs);
      worker.on('message', hear).once('exit', leftOut);
      worker.send({ kind: 'tellFigures', id } satisfies ToWorker, () => {});
    });

  return {
    answer: (worker) => {
      worker.on('message', async (message: FromWorker) => {
        if (message.kind !== 'gatherFigures') return;
        const figures = await Promise.all([register.getMetricsAsJSON(), ...serving().map(figuresOf)]);
        if (!worker.connected) return;
        worker.send({ kind: 'figuresOfAll', id: message.id, figures } satisfies ToWorker, () => {});
      });
    },
    countRestart: () => restarts.inc(),
  };
}
