import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { ServiceUserTrial } from '../access/keystone/service_token.ts';
import type { Config } from '../config/config.ts';
import { type ApiServer, createApiServer } from '../http/server/server.ts';
import { endOf } from '../http/server/tls_files.ts';
import { openLog } from '../log/log.ts';
import { giveBackMemory } from '../start/give_back_memory.ts';
import { openService } from '../start/service.ts';
import { messageOf, printError } from '../text/print.ts';
import { openGathering } from './figures.ts';
import type { FromWorker, ListenerName, ToWorker } from './messages.ts';

/**
 * Serves the connections that the primary hands over, in a process that the primary forked. The process ends when the primary
 * requests it or has ended.
 */
export async function serveAsWorker(): Promise<void> {
  const { worker, ...first } = await firstMessage();
  let { tls, config } = first;
  let renewTls = (_tls: NonNullable<typeof tls>): void => {};
  let renewServiceUser = (settings: Config['keystoneAuthtoken']): void => {
    config = { ...config, keystoneAuthtoken: settings };
  };
  let tryServiceUser = async (_settings: Config['keystoneAuthtoken']): Promise<ServiceUserTrial> => undefined;
  let renewPolicy = (settings: Config['osloPolicy']): readonly string[] => {
    config = { ...config, osloPolicy: settings };
    return [];
  };
  const log = openLog(config.default, worker);
  const { logger, health: logHealth } = log;
  const renewLog = (settings: Config['default']): void => {
    try {
      log.renew(settings);
    } catch (err) {
      logger.error({ err }, 'SIGHUP: the log of this worker stays as it was');
    }
  };
  let close = async (): Promise<void> => {};
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        printError(`placement-api: worker ${worker} could not end cleanly: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  const gathering = openGathering(worker, sendToPrimary);
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'end') end();
    if (message.kind === 'figuresOfAll') gathering.receive(message.id, message);
    if (message.kind === 'reportFigures') gathering.sendFigures(message.id);
    if (message.kind === 'reportShapes') gathering.reportShapes(message.id);
    if (message.kind === 'renewPolicy') {
      sendToPrimary({ kind: 'policyRenewed', id: message.id, problems: renewPolicy(message.settings) });
    }
    if (message.kind === 'tryServiceUser') {
      const { id } = message;
      tryServiceUser(message.settings).then((trial) => sendToPrimary({ kind: 'serviceUserTried', id, trial }));
    }
    if (message.kind === 'renewLog') renewLog(message.settings);
    if (message.kind === 'renewServiceUser') renewServiceUser(message.settings);
    if (message.kind !== 'renewTls') return;
    tls = message.tls;
    renewTls(tls);
  });
  process.on('disconnect', end);
  process.on('SIGTERM', () => sendToPrimary({ kind: 'leaving' }));
  // A terminal sends these signals to the whole group of processes. Only the primary handles them.
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});

  const service = await openService(config, { logger, logHealth, gathering, tlsEndsMs: () => tls && endOf(tls) }).catch(
    (error: unknown) => {
      // The reason is also on standard error, but with a log file an operator reads only the file.
      if (logHealth.file() !== undefined) logger.error(`This worker could not start: ${messageOf(error)}`);
      throw error;
    },
  );
  // These messages may have arrived while the service was opened.
  service.renewServiceUser(config.keystoneAuthtoken);
  service.renewPolicy(config.osloPolicy);
  renewServiceUser = service.renewServiceUser;
  tryServiceUser = service.tryServiceUser;
  renewPolicy = service.renewPolicy;
  await giveBackMemory();
  const options = { clientTimeoutMs: config.api.clientTimeout * 1000, onRefused: service.onRefused, tls };
  const apiServers = new Map<ListenerName, ApiServer>([['api', createApiServer(service.app, options)]]);
  if (service.metricsApp !== undefined) apiServers.set('metrics', createApiServer(service.metricsApp, options));
  takeConnections(new Map([...apiServers].map(([listener, { server }]) => [listener, server])), sendToPrimary);
  renewTls = (renewed) => {
    for (const listener of apiServers.values()) listener.renewTls(renewed);
  };
  close = async () => {
    service.endWaits();
    await Promise.all([...apiServers.values()].map((listener) => listener.drain()));
    await service.close();
  };
  logger.info('This worker serves');
  sendToPrimary({ kind: 'ready' });
}

function firstMessage(): Promise<Extract<ToWorker, { readonly kind: 'start' }>> {
  return new Promise((resolve) => {
    process.once('message', resolve);
  });
}

/** Sends a message to the primary, unless the primary has ended. */
function sendToPrimary(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Serves the connections that the primary hands to this process, and reports to the primary when one has ended. */
export function takeConnections(servers: ReadonlyMap<ListenerName, Server>, send: (message: FromWorker) => void): void {
  // These servers never listen. The event makes Node's server close slow and idle connections, as it does while it
  // listens.
  for (const server of servers.values()) server.emit('listening');
  process.on('message', (message: ToWorker, socket?: Socket) => {
    if (message.kind !== 'connection') return;
    // Sent before anything is read from the connection: until this message the primary may hand it to another worker.
    send({ kind: 'taken', id: message.id });
    if (socket === undefined) {
      // The client has closed the connection meanwhile.
      send({ kind: 'released' });
      return;
    }
    socket.once('close', () => send({ kind: 'released' }));
    const server = servers.get(message.listener);
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
