import net from 'node:net';
import { bind } from '../../src/http/server/listen.ts';

/** A PostgreSQL server as it looks with `lc_messages` of another language. */
export type OtherLanguage = {
  /** The same database, through a proxy that translates what the server says. */
  readonly url: string;
  stop(): void;
};

/**
 * Starts a proxy to a PostgreSQL server in which no message of an error has its English words: the server of the tests brings no
 * translations. SQLSTATE and the names of the fields stay, as they do in every language.
 */
export async function inOtherLanguage(url: string): Promise<OtherLanguage> {
  const { hostname: host, port } = new URL(url);
  const open = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const upstream = net.connect({ host, port: Number(port) });
    const translate = translator();
    upstream.on('data', (data) => client.write(translate(data)));
    client.pipe(upstream);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
  });
  const translated = new URL(url);
  translated.port = new URL(`tcp://${await bind(server, { host: '127.0.0.1', port: 0 })}`).port;
  return {
    url: translated.href,
    stop: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Translates the messages of a server that come in pieces: each has a type, its length, and for an error fields that end with 0. */
function translator(): (data: Buffer) => Buffer {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    const all = Buffer.concat([rest, data]);
    let at = 0;
    while (at + 5 <= all.length) {
      const end = at + 1 + all.readUInt32BE(at + 1);
      if (end > all.length) break;
      if (all[at] === errorResponse) translateFields(all.subarray(at + 5, end));
      at = end;
    }
    rest = all.subarray(at);
    return all.subarray(0, at);
  };
}

const errorResponse = 'E'.charCodeAt(0);
/** Message, detail and hint. */
const translated: readonly string[] = ['M', 'D', 'H'];

function translateFields(fields: Buffer): void {
  for (let at = 0; at < fields.length && fields[at] !== 0; ) {
    const end = fields.indexOf(0, at);
    if (translated.includes(String.fromCharCode(fields[at] ?? 0))) {
      // Most names in messages have an underscore or a quote, and stay.
      const text = fields.toString('latin1', at + 1, end);
      fields.write(
        text.replaceAll(/(?<![\w"])[a-z]+(?![\w"])/g, (word) => 'x'.repeat(word.length)),
        at + 1,
        'latin1',
      );
    }
    at = end + 1;
  }
}
