import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { FromWorker, ToWorker } from './messages.ts';

/** Hands the connections that the primary accepts to its workers. */
export type HandOver = {
  /** From now on the worker gets connections, until it is removed or its process ends. */
  add(worker: ChildProcess): void;
  remove(worker: ChildProcess): void;
  /** Hands a connection to a worker, or keeps it until there is one. */
  give(connection: Socket): void;
  /** Ends the connections that no worker is there for, now and later. */
  close(): void;
};

type Load = {
  /** Connections handed over that the worker has not taken yet, by id. */
  readonly underWay: Map<number, Socket>;
  open: number;
};

/** As many connections wait for a worker as a listening socket would keep. */
const maxWaiting = 511;

/**
 * Not by node:cluster: there a connection that is on its way to a worker that dies stays open for ever, and nobody answers
 * it; and a new worker gets no more connections than the others, which have many. Not by SO_REUSEPORT either: few clients
 * with long-lived connections, as schedulers are, would often share one worker while others idle.
 */
export function openHandOver(): HandOver {
  const loads = new Map<ChildProcess, Load>();
  const waiting = new Set<Socket>();
  let closed = false;
  let lastId = 0;

  /** Who has the fewest on their way, so that a busy worker gets none while another is free, and then the fewest open. */
  const leastLoaded = (): [ChildProcess, Load] | undefined => {
    let least: [ChildProcess, Load] | undefined;
    for (const [worker, load] of loads) {
      if (!worker.connected) continue;
      const by = least === undefined ? -1 : load.underWay.size - least[1].underWay.size || load.open - least[1].open;
      if (by < 0) least = [worker, load];
    }
    return least;
  };
  const handTo = (worker: ChildProcess, load: Load, connection: Socket): void => {
    lastId += 1;
    load.open += 1;
    load.underWay.set(lastId, connection);
    // It stays open here until the worker says that it has it: if it dies before, another gets the connection.
    worker.send({ kind: 'connection', id: lastId } satisfies ToWorker, connection, { keepOpen: true }, () => {});
  };
  const give = (connection: Socket): void => {
    if (closed) {
      connection.destroy();
      return;
    }
    const least = leastLoaded();
    if (least !== undefined) handTo(...least, connection);
    else if (waiting.size < maxWaiting) waiting.add(connection);
    else connection.destroy();
  };

  return {
    add: (worker) => {
      const load: Load = { underWay: new Map(), open: 0 };
      loads.set(worker, load);
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'released') load.open -= 1;
        if (message.kind !== 'taken') return;
        load.underWay.get(message.id)?.destroy();
        load.underWay.delete(message.id);
      });
      worker.once('exit', () => {
        loads.delete(worker);
        whenHeard(worker, () => {
          // It says that it has a connection before it reads from it: so nothing was read from these.
          for (const connection of load.underWay.values()) give(connection);
        });
      });
      // Before they are given: one that still finds no worker waits again.
      const waited = [...waiting];
      waiting.clear();
      for (const connection of waited) give(connection);
    },
    remove: (worker) => {
      loads.delete(worker);
    },
    give: (connection) => {
      connection.on('error', () => {});
      give(connection);
    },
    close: () => {
      closed = true;
      for (const connection of waiting) connection.destroy();
      waiting.clear();
    },
  };
}

/**
 * Calls back when everything that a process said has been heard, which may be after its exit. Not by the event 'disconnect':
 * there is none for a process that was killed while it said something.
 */
function whenHeard(ended: ChildProcess, call: () => void): void {
  if (ended.connected) setImmediate(whenHeard, ended, call);
  else call();
}
