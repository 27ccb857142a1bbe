import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Door, FromWorker, ToWorker } from './messages.ts';

/** Hands the connections that the primary accepts to its workers. */
export type HandOver = {
  /** From now on the worker gets connections, until `remove` is called or its process ends. */
  add(worker: ChildProcess): void;
  remove(worker: ChildProcess): void;
  /** Hands a connection to a worker. Without a worker the connection waits for one. */
  give(connection: Socket, door: Door): void;
  /** Closes the connections that wait for a worker, and all that come later. */
  close(): void;
};

type Arrived = { readonly connection: Socket; readonly door: Door };

type Load = {
  /** Connections handed over that the worker has not taken yet, by id. */
  readonly underWay: Map<number, Arrived>;
  open: number;
};

/** How many connections may wait for a worker: as many as the backlog of a listening socket. */
const maxWaiting = 511;

/**
 * Neither node:cluster nor SO_REUSEPORT is used. With node:cluster, a connection that is being sent to a worker that
 * dies stays open for ever without an answer; and a new worker gets as many new connections as the others, which
 * already have many. With SO_REUSEPORT, few clients with long-lived connections, such as schedulers, would often share
 * one worker while others are idle.
 */
export function openHandOver(): HandOver {
  const loads = new Map<ChildProcess, Load>();
  const waiting = new Set<Arrived>();
  let closed = false;
  let lastId = 0;

  /**
   * The worker with the fewest connections that it has not taken yet, so that a busy worker gets none while another is
   * free; among equal ones the worker with the fewest open connections.
   */
  const leastLoaded = (): [ChildProcess, Load] | undefined => {
    let least: [ChildProcess, Load] | undefined;
    for (const [worker, load] of loads) {
      if (!worker.connected) continue;
      const by = least === undefined ? -1 : load.underWay.size - least[1].underWay.size || load.open - least[1].open;
      if (by < 0) least = [worker, load];
    }
    return least;
  };
  const handTo = (worker: ChildProcess, load: Load, arrived: Arrived): void => {
    lastId += 1;
    load.open += 1;
    load.underWay.set(lastId, arrived);
    // The connection stays open here until the worker confirms it. If the worker dies before that, another one gets the
    // connection.
    const message: ToWorker = { kind: 'connection', id: lastId, door: arrived.door };
    worker.send(message, arrived.connection, { keepOpen: true }, () => {});
  };
  const give = (arrived: Arrived): void => {
    if (closed) {
      arrived.connection.destroy();
      return;
    }
    const least = leastLoaded();
    if (least !== undefined) handTo(...least, arrived);
    else if (waiting.size < maxWaiting) waiting.add(arrived);
    else arrived.connection.destroy();
  };

  return {
    add: (worker) => {
      const load: Load = { underWay: new Map(), open: 0 };
      loads.set(worker, load);
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'released') load.open -= 1;
        if (message.kind !== 'taken') return;
        load.underWay.get(message.id)?.connection.destroy();
        load.underWay.delete(message.id);
      });
      worker.once('exit', () => {
        loads.delete(worker);
        whenAllReceived(worker, () => {
          // A worker confirms a connection before it reads from it, so nothing was read from these.
          for (const arrived of load.underWay.values()) give(arrived);
        });
      });
      // The set is cleared first, because a connection that still finds no worker is added again.
      const waited = [...waiting];
      waiting.clear();
      for (const arrived of waited) give(arrived);
    },
    remove: (worker) => {
      loads.delete(worker);
    },
    give: (connection, door) => {
      connection.on('error', () => {});
      give({ connection, door });
    },
    close: () => {
      closed = true;
      for (const { connection } of waiting) connection.destroy();
      waiting.clear();
    },
  };
}

/**
 * Calls back when all messages of a process have been received, which may be after its exit. The event 'disconnect'
 * cannot be used: it is not emitted for a process that was killed while it sent a message.
 */
function whenAllReceived(ended: ChildProcess, call: () => void): void {
  if (ended.connected) setImmediate(whenAllReceived, ended, call);
  else call();
}
