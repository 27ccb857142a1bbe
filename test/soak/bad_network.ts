import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bind } from '../../src/http/server/listen.ts';

/** A TCP proxy on 127.0.0.1 that can fail. */
export type BadNetwork = {
  readonly port: number;
  /** From now on new connections lead to another port. */
  lead(port: number): void;
  /** Ends all connections. */
  cut(): void;
  /** Each piece of data comes so much later. 0 is the end of it. */
  delay(milliseconds: number): void;
  /** Nothing gets through, neither data nor the first bytes of a new connection, until it is called with false. */
  block(isBlocked: boolean): void;
  close(): void;
};

/** Resolves when a socket takes more, or is closed. */
const drained = (socket: net.Socket): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });

/** @param first the port that it leads to */
export async function openBadNetwork(first: number): Promise<BadNetwork> {
  let target = first;
  let delayMs = 0;
  let isBlocked = false;
  const open = new Set<net.Socket>();
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  const pass = async (from: net.Socket, to: net.Socket): Promise<void> => {
    open.add(from);
    from.on('error', () => {});
    from.on('close', () => {
      open.delete(from);
      to.destroy();
    });
    try {
      for await (const data of from) {
        while (isBlocked && !to.destroyed) await sleep(20);
        if (delayMs > 0) await sleep(delayMs);
        if (!to.write(data)) await drained(to);
      }
      to.end();
    } catch {
      to.destroy(); // the other end has broken off
    }
  };
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    const upstream = net.connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    pass(client, upstream);
    pass(upstream, client);
  });
  const address = await bind(server, { host: '127.0.0.1', port: 0 });
  return {
    port: Number(new URL(`tcp://${address}`).port),
    lead: (port) => {
      target = port;
    },
    cut,
    delay: (milliseconds) => {
      delayMs = milliseconds;
    },
    block: (blocked) => {
      isBlocked = blocked;
    },
    close: () => {
      server.close();
      cut();
    },
  };
}
