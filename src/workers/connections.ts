import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { FromWorker, ToWorker } from './messages.ts';

/** Serves the connections that the primary hands to this process from now on, and tells it when one has ended. */
export function takeConnections(server: Server, tell: (message: FromWorker) => void): void {
  // It never listens itself; this starts what Node's server does while it does: slow and idle connections are cut off.
  server.emit('listening');
  process.on('message', (message: ToWorker, socket?: Socket) => {
    if (message.kind !== 'connection') return;
    // Before anything is read from it: until then the primary may give it to another.
    tell({ kind: 'taken', id: message.id });
    if (socket === undefined) {
      // The client has gone meanwhile.
      tell({ kind: 'released' });
      return;
    }
    socket.once('close', () => tell({ kind: 'released' }));
    serve(server, socket);
  });
}

/** As Node's server does with a connection that it accepted itself. */
function serve(server: Server, socket: Socket): void {
  socket.setNoDelay(true);
  // Under TLS there is no half: one that a client left before its first request would stay.
  socket.allowHalfOpen = !(server instanceof TlsServer);
  server.emit('connection', socket);
}
