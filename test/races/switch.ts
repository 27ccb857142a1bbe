import net from 'node:net';
import { bind } from '../../src/http/server/listen.ts';

/**
 * An address that leads to one server and later to another one, like a virtual IP or a proxy in front of PostgreSQL.
 */
export type Switch = {
  /** The port of 127.0.0.1 that clients connect to. */
  readonly port: number;
  /** From now on leads to another port. Ends the connections to the old port. */
  lead(port: number): void;
  close(): void;
};

export async function openSwitch(first: number): Promise<Switch> {
  let target = first;
  const open = new Set<net.Socket>();
  const keep = (socket: net.Socket, other: net.Socket): void => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      other.destroy();
    });
  };
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    keep(client, upstream);
    keep(upstream, client);
    client.pipe(upstream).pipe(client);
  });
  const address = await bind(server, { host: '127.0.0.1', port: 0 });
  return {
    port: Number(new URL(`tcp://${address}`).port),
    lead: (port) => {
      target = port;
      cut();
    },
    close: () => {
      server.close();
      cut();
    },
  };
}
