import { once } from 'node:events';
import net from 'node:net';
import mysql, { type Connection } from 'mysql2';

/** The rows of an answer, with every value as text. Null if the statement has none, such as `start transaction`. */
export type Answer = readonly (readonly (string | null)[])[] | null;

export type Replay = {
  readonly port: number;
  /** Ends all connections. */
  cut(): void;
  stop(): void;
};

/**
 * Speaks MySQL's protocol on a free port of 127.0.0.1. A function returns the answer to each statement. Any password is
 * accepted.
 */
export async function startReplay(answer: (statement: string) => Promise<Answer>): Promise<Replay> {
  const clients = new Set<Connection>();
  // Each packet is a write of its own. Without `noDelay` most answers wait 40 ms, until the client confirms the packet before.
  const listener = net.createServer({ noDelay: true }, (stream) => {
    // Like the connection that mysql.createServer makes for a stream. That function would listen on all addresses.
    const client = mysql.createConnection({ stream, isServer: true } as mysql.ConnectionOptions);
    clients.add(client);
    client.on('error', () => {}); // a client may disconnect in the middle
    // The packets of each statement are counted from 0. mysql2 does this only for clients.
    const awaitNext = () => Reflect.set(client, 'sequenceId', 0);
    client.serverHandshake({
      protocolVersion: 10,
      serverVersion: 'recorded',
      connectionId: 1,
      statusFlags: 2,
      characterSet: utf8mb4,
      capabilityFlags: 0xffffff ^ compressionAndTls,
      authCallback: (_login: unknown, accept: (error: null) => void) => {
        accept(null);
        awaitNext();
      },
    });
    const reply = async (statement: string): Promise<void> => {
      try {
        send(client, await answer(statement));
      } catch (error) {
        client.writeError({ code: 1105, message: String(error) });
      }
      awaitNext();
    };
    client.on('query', reply);
    client.on('stmt_prepare', reply); // mysql2 reports `set ...` with this event
  });
  const cut = () => {
    for (const client of clients) client.destroy();
    clients.clear();
  };
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('A server on a TCP port has an address.');
  return {
    port: address.port,
    cut,
    stop: () => {
      listener.close();
      cut();
    },
  };
}

const utf8mb4 = 45;
const compressionAndTls = 0x20 | 0x800;
const textColumn = { columnType: 253, characterSet: utf8mb4, columnLength: 1024, flags: 0, decimals: 0 };

function send(client: Connection, rows: Answer): void {
  if (rows === null) {
    client.writeOk();
    return;
  }
  const [first = ['']] = rows;
  const names = first.map((_, index) => `c${index}`);
  client.writeTextResult(
    rows.map((row) => Object.fromEntries(row.map((value, index) => [`c${index}`, value]))),
    names.map((name) => ({ ...textColumn, catalog: 'def', schema: '', table: '', orgTable: '', name, orgName: name })),
  );
}
