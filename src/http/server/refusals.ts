import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Unanswered } from './unanswered.ts';

/** Refuses requests, and ends their connections. */
export type Refusals = {
  /**
   * Stops reading from a connection, sends this answer, and ends the connection. Clients may send requests without
   * waiting for answers, and match answers to requests by their order: so the answers to all earlier requests are sent
   * first.
   *
   * @param own the response object of the refused request, where there is one already. It is not waited for; but where
   *   a handler has begun to send it, the client gets that answer instead.
   */
  refuse(socket: Socket, answer: string, own?: ServerResponse): void;
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

/** Refusals on the connections of a server. */
export function openRefusals(unanswered: Unanswered): Refusals {
  const refused = new WeakSet<Socket>();
  return {
    isRefused: (socket) => refused.has(socket),
    refuse: (socket, answer, own) => {
      refused.add(socket);
      stopReading(socket);
      const before = unanswered.on(socket).filter((response) => response !== own);
      whenClosed(before, () => {
        if (own?.headersSent) whenClosed([own], () => endWith(socket, ''));
        else endWith(socket, answer);
      });
    },
  };
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
