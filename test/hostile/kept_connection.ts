import net from 'node:net';
import { type Answer, closes, keptBytes, readAnswers } from './answers.ts';
import type { Outcome, Train } from './train.ts';

/* A connection that is reused for many trains. */

/** A client that connects again where its connection was closed. */
export type KeptConnection = {
  /** Sends a train, and reads its answers. */
  send(train: Train): Promise<Outcome>;
  close(): void;
};

/** How long a client waits for an answer that may take as long as it waits. */
const patienceMs = 120;
/** How long it waits for other answers; on a busy machine they may take a while. */
const longPatienceMs = 60_000;

/** A connection, whose bytes go to the sender of the present train. */
type Line = { readonly socket: net.Socket; onData: (data: Buffer) => void };

/** Opens a client of a port. */
export function openKept(port: number): KeptConnection {
  // One buffer for all that is read: new ones for each read were a third of the client's processor time, by garbage collection.
  const buffer = Buffer.alloc(128 * 1024);
  let line: Line | undefined;
  const open = (): Line => {
    const callback = (length: number): boolean => {
      opened.onData(buffer.subarray(0, length));
      return true;
    };
    // The client ends its side by itself, so that answers which are still on their way are read.
    const to = { port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true, onread: { buffer, callback } };
    const opened: Line = { socket: net.connect(to), onData: () => {} };
    opened.socket.on('error', () => {});
    return opened;
  };
  return {
    send: async (train) => {
      if (line === undefined || line.socket.destroyed) line = open();
      const outcome = await exchange(line, train);
      if (train.end !== 'nothing' || outcome.ended !== 'answered') {
        line.socket.destroy();
        line = undefined;
      }
      return outcome;
    },
    close: () => line?.socket.destroy(),
  };
}

function exchange(line: Line, { cars, bytes, cutAt, end }: Train): Promise<Outcome> {
  return new Promise((resolve) => {
    const { socket } = line;
    const answers: Answer[] = [];
    let rest: Buffer = Buffer.alloc(0);
    let problem: string | undefined;
    const endsOpen = end === 'nothing' || end === 'may wait';
    const done = (ended: Outcome['ended']): void => {
      line.onData = () => {};
      socket.removeListener('end', onEnd).removeListener('close', onEnd);
      clearTimeout(timer);
      resolve({ answers, restBytes: rest.length, ended, ...(problem === undefined ? {} : { problem }) });
    };
    const onEnd = (): void => done('closed by the server');
    const giveUp = (): void => done('given up');
    let timer = setTimeout(giveUp, longPatienceMs);
    socket.on('end', onEnd).on('close', onEnd);
    line.onData = (data) => {
      const read = readAnswers(
        rest.length === 0 ? data : Buffer.concat([rest, data]),
        (place) => cars[answers.length + place]?.isHead === true,
      );
      for (const { status, head, body } of read.answers)
        answers.push({ status, head, body: Buffer.from(body.subarray(0, keptBytes)) });
      rest = Buffer.from(read.rest);
      problem = read.problem;
      if (problem !== undefined) done('answered');
      else if (endsOpen && answers.length >= cars.length && rest.length === 0) {
        // An answer with this header is the last one; the end of the connection follows.
        if (!closes(answers.at(-1))) done('answered');
      } else if (end === 'may wait' && answers.length === cars.length - 1) {
        clearTimeout(timer);
        timer = setTimeout(giveUp, patienceMs);
      }
    };
    const finish = (): void => {
      if (!endsOpen) socket.end();
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
