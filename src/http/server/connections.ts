import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RefusedBefore } from '../../metrics/metrics.ts';
import { newRequestId, requestIdHeader } from '../exchange.ts';

// Connections

/** The connections of a server. */
export type OpenConnections = {
  /** The TCP connection below a TLS connection; undefined if it is closed, or if this is no TLS connection. */
  tcpConnectionOf(secure: TLSSocket): Socket | undefined;
  /** Ends the connections on which no request has begun: Node's server does not count them as idle. */
  endUnused(): void;
  endAll(): void;
  /** Resolves when all connections are closed; the server must not accept new ones any more. */
  ended(): Promise<void>;
};

/** Notes every connection of a server from now on. */
export function trackConnections(server: Server): OpenConnections {
  /**
   * The TCP connections, and after its handshake each TLS connection behind the TCP connection below. Bytes that were read from a TLS
   * connection belong to a request; bytes below it may belong to the handshake.
   */
  const open = new Set<Socket>();
  let ended: PromiseWithResolvers<void> | undefined;
  const resolveIfNone = (): void => {
    if (open.size === 0) ended?.resolve();
  };
  const note = (socket: Socket): void => {
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      resolveIfNone();
    });
  };
  server.on('connection', note); // with TLS, too, this is the TCP connection below
  server.on('secureConnection', note);
  return {
    // The clients of a UNIX socket have no addresses by which they could be distinguished.
    tcpConnectionOf: ({ remoteAddress, remotePort }) =>
      remotePort === undefined
        ? undefined
        : [...open].find((socket) => socket.remotePort === remotePort && socket.remoteAddress === remoteAddress),
    endUnused: () => {
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
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

// Answers that are under way

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

// Refusals

/** What is wrong with a request, and the answer to it. */
export type Refusal = {
  readonly reason: RefusedBefore;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** The refused request, where its head was read. */
  readonly request?: IncomingMessage | undefined;
  /** The code of the error, for the log. */
  readonly cause?: string | undefined;
};

/** A request, or a connection, that was refused before the app got it. What is not known is undefined. */
export type RefusedConnection = {
  readonly reason: RefusedBefore;
  readonly detail: string;
  readonly cause?: string | undefined;
  /** The request id and the status of the answer. */
  readonly requestId?: string | undefined;
  readonly status?: number | undefined;
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly client?: string | undefined;
};

/** The answer to a refused request, in the form of the API's errors. */
type RefusalAnswer = { readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** Makes the answer to a refused request, with a new id. */
export function answerTo({ status, title, detail }: Refusal, requestId: string): RefusalAnswer {
  const explanation =
    status === 400
      ? 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
      : title;
  const body = JSON.stringify({
    errors: [{ status, title, detail: `${explanation}\n\n ${detail}  `, request_id: requestId }],
  });
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'content-length': `${Buffer.byteLength(body)}`,
      [requestIdHeader]: requestId,
    },
  };
}

/** Refuses requests, and ends their connections. */
export type Refusals = {
  /**
   * Stops reading from a connection, answers the refused request, and ends the connection. Clients may send requests without
   * waiting for answers, and match answers to requests by their order: so the answers to all earlier requests are sent
   * first.
   *
   * @param response the response object of the refused request, where there is one already. If a handler has begun to send it,
   *   the client gets that answer instead of the refusal.
   */
  refuse(socket: Socket, refusal: Refusal, response?: ServerResponse): void;
  /** Stops reading from a connection and ends it, without a further answer: its last request is answered already. */
  end(socket: Socket): void;
  /**
   * Whether a request was refused on a connection. A later request on it gets no answer, so it must not be carried out.
   */
  isRefused(socket: Socket): boolean;
};

/**
 * How long the client has to read the refusal, in milliseconds. If the connection were closed at once, the refusal
 * might be lost.
 */
const readingMs = 1_000;

/**
 * Refusals on the connections of a server.
 *
 * @param report called once for each refusal
 */
export function openRefusals(unanswered: Unanswered, report: (refused: RefusedConnection) => void): Refusals {
  const refused = new WeakSet<Socket>();
  const stop = (socket: Socket, refusedResponse: ServerResponse | undefined, answerLast: () => void): void => {
    refused.add(socket);
    stopReading(socket);
    const before = unanswered.on(socket).filter((response) => response !== refusedResponse);
    whenClosed(before, answerLast);
  };
  return {
    isRefused: (socket) => refused.has(socket),
    end: (socket) => stop(socket, undefined, () => endWith(socket, '')),
    refuse: (socket, refusal, response) => {
      const client = socket.remoteAddress;
      stop(socket, response, () => {
        if (response?.headersSent) {
          whenClosed([response], () => endWith(socket, ''));
          return;
        }
        const requestId = newRequestId();
        const { reason, status, detail, cause, request } = refusal;
        report({ reason, status, detail, cause, requestId, client, method: request?.method, url: request?.url });
        endWith(socket, textOf(refusal, requestId));
      });
    },
  };
}

/** The answer as it is sent. The answer to HEAD has no body. */
function textOf(refusal: Refusal, requestId: string): string {
  const { headers, body } = answerTo(refusal, requestId);
  const lines = Object.entries({ ...headers, connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${refusal.status} ${refusal.title}\r\n${lines.join('')}\r\n`;
  return refusal.request?.method === 'HEAD' ? head : head + body;
}

/**
 * Data that still arrives is dropped: if it stayed unread, the kernel would reset the connection, and answers would be
 * lost.
 */
function stopReading(socket: Socket): void {
  // Node's parser takes the bytes from below the stream until there is a listener for them. Its listener for the end
  // would close the connection before the answers, or after the next one.
  socket.removeAllListeners('data').removeAllListeners('end');
  socket.on('data', () => {});
}

/** Calls back as soon as the kernel has all answers, or their connection is closed. */
function whenClosed(responses: readonly ServerResponse[], call: () => void): void {
  const open = responses.filter((response) => !response.closed);
  let left = open.length;
  if (left === 0) call();
  for (const response of open) {
    response.once('close', () => {
      left -= 1;
      if (left === 0) call();
    });
  }
}

/**
 * Sends the last answer on a connection. Where the client does not close its side in time, the connection is cut off.
 */
function endWith(socket: Socket, answer: string): void {
  if (socket.destroyed) return;
  // An earlier answer may have ended the connection already.
  if (socket.writable) socket.end(answer);
  const timer = setTimeout(() => socket.destroy(), readingMs);
  socket.once('close', () => clearTimeout(timer));
}
