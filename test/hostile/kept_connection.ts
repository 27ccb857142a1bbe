import net from 'node:net';
import { type Answer, readAnswers } from './answers.ts';
import type { Outcome, Train } from './train.ts';

/* A connection that is kept for many trains. */

/** A client that connects again where its connection was closed. */
export type KeptConnection = {
  /** Sends a train, and reads its answers. */
  send(train: Train): Promise<Outcome>;
  close(): void;
};

/** How long a client waits for an answer that may take as long as it waits. */
const patienceMs = 120;
/** How long it waits for other answers; on a busy machine they may take a while. */
const longPatienceMs = 5_000;

/** Opens a client of a port. */
export function openKept(port: number): KeptConnection {
  let socket: net.Socket | undefined;
  return {
    send: async (train) => {
      if (socket === undefined || socket.destroyed) {
        // The client ends its side by itself, so that answers which are still on their way are read.
        socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
        socket.on('error', () => {});
      }
      const outcome = await exchange(socket, train);
      if (train.end !== 'nothing' || outcome.ended !== 'answered') {
        socket.destroy();
        socket = undefined;
      }
      return outcome;
    },
    close: () => socket?.destroy(),
  };
}

function exchange(socket: net.Socket, { cars, bytes, cutAt, end }: Train): Promise<Outcome> {
  return new Promise((resolve) => {
    const answers: Answer[] = [];
    let rest: Buffer = Buffer.alloc(0);
    let problem: string | undefined;
    const endsOpen = end === 'nothing' || end === 'may wait';
    const done = (ended: Outcome['ended']): void => {
      socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close');
      socket.setTimeout(0).removeAllListeners('timeout');
      resolve({ answers, restBytes: rest.length, ended, ...(problem === undefined ? {} : { problem }) });
    };
    const wait = (): void => {
      const isLast = end === 'may wait' && answers.length === cars.length - 1;
      socket.setTimeout(isLast ? patienceMs : longPatienceMs);
    };
    socket.on('timeout', () => done('given up'));
    socket.on('end', () => done('closed by the server'));
    socket.on('close', () => done('closed by the server'));
    socket.on('data', (data: Buffer) => {
      const read = readAnswers(
        rest.length === 0 ? data : Buffer.concat([rest, data]),
        (place) => cars[answers.length + place]?.isHead === true,
      );
      answers.push(...read.answers);
      rest = read.rest;
      problem = read.problem;
      if (problem !== undefined) done('answered');
      else if (endsOpen && answers.length >= cars.length && rest.length === 0) {
        // An answer with this header is the last one; the end of the connection follows.
        if (!/\r\nconnection: close\r\n/i.test(answers.at(-1)?.head ?? '')) done('answered');
      } else if (end === 'may wait') wait();
    });
    wait();
    const finish = (): void => {
      if (end === 'half-close' || end === 'spoilt') socket.end();
    };
    if (cutAt === undefined) {
      socket.write(bytes);
      finish();
    } else {
      socket.write(bytes.subarray(0, cutAt));
      setImmediate(() => {
        if (socket.writable) socket.write(bytes.subarray(cutAt));
        finish();
      });
    }
  });
}
