import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { openConfiguredDatabase } from '../database/open_database.ts';
import { prepareDatabase } from '../database/prepare_database.ts';
import { bind } from '../http/bind.ts';
import { acceptMs, type Listening } from '../http/listen.ts';
import type { Tls } from '../http/tls_files.ts';
import { openHandOver } from './hand_over.ts';
import { startWorkers } from './supervisor.ts';

/**
 * Serves by `[api] workers` processes. This one, the primary, prepares the database, accepts the connections and hands them
 * over, and watches the workers; it knows nothing of requests.
 *
 * @param options.program the file that a worker process runs
 * @throws Error with the remedy where the database cannot be used, no worker comes up, or the address cannot be listened on.
 */
export async function serveByWorkers(
  config: Config,
  options: { readonly tls: Tls | undefined; readonly program: string; readonly logger: Logger },
): Promise<Listening> {
  const { tls, logger } = options;
  const database = await openConfiguredDatabase(config, { warn: (line) => logger.warn(line) });
  try {
    await prepareDatabase(database, config.placementDatabase);
  } finally {
    await database.close();
  }
  const prepared = { ...config, placementDatabase: { ...config.placementDatabase, syncOnStartup: false } };
  const handOver = openHandOver();
  const workers = await startWorkers({ ...options, config: prepared, handOver });
  // What it accepts is read by the workers only.
  const acceptor = net.createServer({ pauseOnConnect: true }, handOver.give);
  try {
    const address = await bind(acceptor, config.api);
    return {
      url: `${tls === undefined ? 'http' : 'https'}://${address}`,
      renewTls: workers.renewTls,
      reopenLogs: workers.reopenLogs,
      close: async () => {
        await sleep(acceptMs);
        acceptor.close();
        handOver.close();
        await workers.end();
      },
    };
  } catch (error) {
    await workers.end();
    throw error;
  }
}
