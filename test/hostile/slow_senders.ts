import net from 'node:net';
import type { Random } from '../races/random.ts';
import type { Corpus } from './corpus.ts';

/* Clients that send their requests in small pieces, and often leave in the middle of one. */

/** Slow clients. */
export type SlowSenders = {
  /** Lets each of them send its next piece. */
  step(): void;
  /** What they have sent of the requests that are under way. */
  readonly sent: () => readonly Buffer[];
  /** The answers to them that have a status of 500 or more. */
  readonly failed: () => readonly string[];
  readonly close: () => void;
};

/** Opens so many slow clients. */
export function openSlow(port: number, random: Random, corpus: Corpus, count: number): SlowSenders {
  const clients: { socket: net.Socket; bytes: Buffer; at: number }[] = [];
  const failed: string[] = [];
  const open = () => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => {});
    socket.setEncoding('latin1').on('data', (text: string) => {
      const status = /^HTTP\/1\.1 (5\d\d) /m.exec(text)?.[1];
      if (status !== undefined) failed.push(status);
    });
    return { socket, bytes: corpus.any().bytes, at: 0 };
  };
  return {
    step: () => {
      for (let index = 0; index < count; index += 1) {
        const client = clients[index];
        if (client === undefined || client.socket.destroyed || client.at >= client.bytes.length || random.percent(3)) {
          client?.socket.destroy();
          clients[index] = open();
          continue;
        }
        const next = client.at + 1 + random.below(60);
        client.socket.write(client.bytes.subarray(client.at, next));
        client.at = next;
      }
    },
    sent: () => clients.map(({ bytes, at }) => bytes.subarray(0, at)),
    failed: () => failed,
    close: () => {
      for (const { socket } of clients) socket.destroy();
    },
  };
}
