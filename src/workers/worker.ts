import { createApiServer } from '../http/server.ts';
import { openLog } from '../log/log.ts';
import { messageOf } from '../message_of.ts';
import { giveBackMemory } from '../process/give_back_memory.ts';
import { openService } from '../service.ts';
import { takeConnections } from './connections.ts';
import { openGathering } from './gathering.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/**
 * Serves the connections that the primary hands over, in a process that it forked, until it says that this is the end or is
 * gone itself.
 */
export async function serveAsWorker(): Promise<void> {
  const { config, worker, ...first } = await firstMessage();
  let { tls } = first;
  let renewTls = (_tls: NonNullable<typeof tls>): void => {};
  let reopenLog = (): void => {};
  let close = async (): Promise<void> => {};
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`placement-api: worker ${worker} could not end in order: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  const gathering = openGathering(worker, tell);
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'end') end();
    if (message.kind === 'figuresOfAll') gathering.gathered(message.id, message.figures);
    if (message.kind === 'tellFigures') gathering.tellOwn(message.id);
    if (message.kind === 'reopenLog') reopenLog();
    if (message.kind !== 'renewTls') return;
    tls = message.tls;
    renewTls(tls);
  });
  process.on('disconnect', end);
  process.on('SIGTERM', () => tell({ kind: 'leaving' }));
  // These come to a whole group of processes, from a terminal: they are for the primary.
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});

  const { logger, reopen } = openLog(config.default, worker);
  reopenLog = reopen;
  const service = await openService(config, { logger, gathering });
  await giveBackMemory();
  const api = createApiServer(service.app, {
    clientTimeoutMs: config.api.clientTimeout * 1000,
    ...(tls === undefined ? {} : { tls }),
  });
  takeConnections(api.server, tell);
  renewTls = api.renewTls;
  close = async () => {
    await api.drain();
    await service.close();
  };
  logger.info('This worker serves');
  tell({ kind: 'ready' });
}

function firstMessage(): Promise<Extract<ToWorker, { readonly kind: 'start' }>> {
  return new Promise((resolve) => {
    process.once('message', resolve);
  });
}

/** Tells the primary, which may be gone. */
function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
