import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Door, FromWorker, ToWorker } from './messages.ts';

/** Serves the connections that the primary hands to this process, and tells the primary when one has ended. */
export function takeConnections(servers: ReadonlyMap<Door, Server>, tell: (message: FromWorker) => void): void {
  // These servers never listen. The event makes Node's server close slow and idle connections, as it does while it
  // listens.
  for (const server of servers.values()) server.emit('listening');
  process.on('message', (message: ToWorker, socket?: Socket) => {
    if (message.kind !== 'connection') return;
    // Sent before anything is read from the connection: until then the primary may hand it to another worker.
    tell({ kind: 'taken', id: message.id });
    if (socket === undefined) {
      // The client has closed the connection meanwhile.
      tell({ kind: 'released' });
      return;
    }
    socket.once('close', () => tell({ kind: 'released' }));
    const server = servers.get(message.door);
    if (server === undefined) socket.destroy();
    else serve(server, socket);
  });
}

/** Does the same as Node's server with a connection that it has accepted itself. */
function serve(server: Server, socket: Socket): void {
  socket.setNoDelay(true);
  // TLS has no half-open connections: one that a client closed before its first request would stay open.
  socket.allowHalfOpen = !(server instanceof TlsServer);
  server.emit('connection', socket);
}
