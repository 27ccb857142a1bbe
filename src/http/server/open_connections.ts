import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** The connections of a server. */
export type OpenConnections = {
  /** The TCP connection below a TLS connection; undefined if it has ended. */
  below(secure: TLSSocket): Socket | undefined;
  /** Ends the connections on which no data ever arrived: Node's server does not count them as idle. */
  endSilent(): void;
  endAll(): void;
  /** Resolves as soon as no connection is left; the server must not accept new ones any more. */
  ended(): Promise<void>;
};

/** Notes every connection of a server from now on. */
export function trackConnections(server: Server): OpenConnections {
  const open = new Set<Socket>();
  let ended: PromiseWithResolvers<void> | undefined;
  const look = (): void => {
    if (open.size === 0) ended?.resolve();
  };
  // With TLS, too, this is the TCP connection below.
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      look();
    });
  });
  return {
    below: ({ remoteAddress, remotePort }) =>
      [...open].find((socket) => socket.remotePort === remotePort && socket.remoteAddress === remoteAddress),
    endSilent: () => {
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    },
    endAll: () => {
      for (const socket of open) socket.destroy();
    },
    ended: () => {
      ended ??= Promise.withResolvers();
      look();
      return ended.promise;
    },
  };
}
