import type { Socket } from 'node:net';
import { type ApiServer, createApiServer } from '../http/server.ts';
import { openLog } from '../log.ts';
import { openService } from '../service.ts';
import { openGathering } from './gathering.ts';
import type { FromWorker, ToWorker } from './messages.ts';

type Serving = { readonly api: ApiServer; close(): Promise<void> };

/**
 * Serves the connections that the primary hands over, in a process that it forked, until it says that this is the end or is
 * gone itself.
 */
export async function serveAsWorker(): Promise<void> {
  const { config, tls, worker } = await firstMessage();
  const tell = (message: FromWorker): void => {
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  };
  let serving: Serving | undefined;
  let ending = false;
  const end = async (): Promise<void> => {
    if (ending) return;
    ending = true;
    await serving?.close();
    process.exit(0);
  };
  process.on('disconnect', end);
  // Signals to the group, as a terminal sends them, are for the primary.
  process.on('SIGHUP', () => {});
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => tell({ kind: 'leaving' }));

  const gathering = openGathering(worker, tell);
  const connections = new Set<Socket>();
  let noneLeft = (): void => {};
  process.on('message', (message: ToWorker, socket?: Socket) => {
    if (message.kind === 'end') end();
    if (message.kind === 'renewTls') serving?.api.renewTls(message.tls);
    if (message.kind === 'figuresOfAll') gathering.gathered(message.id, message.figures);
    if (message.kind === 'tellFigures') gathering.tellOwn(message.id);
    if (message.kind !== 'connection') return;
    // Before anything is read from it: until then the primary may give it to another.
    tell({ kind: 'taken', id: message.id });
    // The client may have gone meanwhile.
    if (socket === undefined || serving === undefined) {
      socket?.destroy();
      tell({ kind: 'released' });
      return;
    }
    connections.add(socket);
    socket.once('close', () => {
      connections.delete(socket);
      tell({ kind: 'released' });
      if (connections.size === 0) noneLeft();
    });
    serve(serving.api, socket);
  });

  const logger = openLog(config.default.debug, worker);
  const service = await openService(config, { logger, gathering });
  const api = createApiServer(service.app, tls === undefined ? {} : { tls });
  // It never listens itself; this starts what Node's server does while it does: slow and idle connections are cut off.
  api.server.emit('listening');
  serving = {
    api,
    close: async () => {
      const closed = Promise.withResolvers<void>();
      noneLeft = closed.resolve;
      if (connections.size === 0) noneLeft();
      await api.drain(closed.promise);
      await service.close();
    },
  };
  logger.info('This worker serves');
  tell({ kind: 'ready' });
}

function firstMessage(): Promise<Extract<ToWorker, { readonly kind: 'start' }>> {
  return new Promise((resolve) => {
    process.once('message', resolve);
  });
}

/** As Node's server does with a connection that it accepted itself. */
function serve({ server }: ApiServer, socket: Socket): void {
  socket.setNoDelay(true);
  // A client may end its side when it has sent its request, and wants the answer all the same.
  socket.allowHalfOpen = true;
  server.emit('connection', socket);
}
