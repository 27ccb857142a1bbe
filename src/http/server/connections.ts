import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** The connections of a server. */
export type OpenConnections = {
  /** The TCP connection below a TLS connection; undefined if it has ended, or if it is none. */
  tcpConnectionOf(secure: TLSSocket): Socket | undefined;
  /** Ends the connections on which no request has begun: Node's server does not count them as idle. */
  endUnused(): void;
  endAll(): void;
  /** Resolves as soon as no connection is left; the server must not accept new ones any more. */
  ended(): Promise<void>;
};

/** Notes every connection of a server from now on. */
export function trackConnections(server: Server): OpenConnections {
  const open = new Set<Socket>();
  /** The TLS connections. Bytes that were read from one belong to a request; bytes below it may belong to the handshake. */
  const secure = new Set<TLSSocket>();
  let ended: PromiseWithResolvers<void> | undefined;
  const resolveIfNone = (): void => {
    if (open.size === 0) ended?.resolve();
  };
  // With TLS, too, this is the TCP connection below.
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      resolveIfNone();
    });
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    secure.add(socket);
    socket.once('close', () => secure.delete(socket));
  });
  return {
    // The clients of a UNIX socket have no addresses by which they could be distinguished.
    tcpConnectionOf: ({ remoteAddress, remotePort }) =>
      remotePort === undefined
        ? undefined
        : [...open].find((socket) => socket.remotePort === remotePort && socket.remoteAddress === remoteAddress),
    endUnused: () => {
      for (const socket of [...open, ...secure]) if (socket.bytesRead === 0) socket.destroy();
    },
    endAll: () => {
      for (const socket of open) socket.destroy();
    },
    ended: () => {
      ended ??= Promise.withResolvers();
      resolveIfNone();
      return ended.promise;
    },
  };
}

/** An answer that is not sent completely. */
type UnansweredRequest = {
  readonly response: ServerResponse;
  /** Counts the requests of the server. */
  readonly number: number;
  /** When it was first seen to wait for its client, by `performance.now()`; infinity where it does not wait. */
  waitsSinceMs: number;
};

/** The answers of a server that are not sent completely. */
export type Unanswered = {
  /** In no particular order. */
  readonly all: readonly UnansweredRequest[];
  /** The answers of one connection: several where a client sends requests without waiting for answers. */
  on(socket: Socket): readonly ServerResponse[];
  /** Whether the request that is arriving on a connection has its answer already, before its whole body has arrived. */
  isAnsweredEarly(socket: Socket): boolean;
};

/**
 * Notes the answers of a server until they are sent completely.
 *
 * They are in a list; where one is removed, the last one replaces it. A Set with so many additions and removals is
 * rebuilt again and again, and V8 links each table to the next one: a table that a garbage collection finds in use
 * keeps all later ones in memory, with every request that they refer to, until the whole heap is collected. That took a
 * tenth of the CPU time.
 */
export function trackUnanswered(server: Server): Unanswered {
  const list: (UnansweredRequest & { index: number })[] = [];
  let requests = 0;
  const answeredEarly = new WeakMap<Socket, IncomingMessage>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    requests += 1;
    const added = { response, number: requests, waitsSinceMs: Number.POSITIVE_INFINITY, index: list.length };
    list.push(added);
    response.once('close', () => {
      if (!request.complete) answeredEarly.set(request.socket, request);
      const last = list.pop();
      if (last === undefined || last === added) return;
      list[added.index] = last;
      last.index = added.index;
    });
  });
  return {
    all: list,
    on: (socket) => list.map(({ response }) => response).filter(({ req }) => req.socket === socket),
    isAnsweredEarly: (socket) => answeredEarly.get(socket)?.complete === false,
  };
}
