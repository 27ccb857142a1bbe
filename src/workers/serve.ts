import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { metricsAddress } from '../http/metrics_endpoint.ts';
import { type Address, acceptMs, bind, type Listening } from '../http/server/listen.ts';
import type { Tls } from '../http/server/tls_files.ts';
import { openConfiguredDatabase } from '../start/open_database.ts';
import { prepareDatabase } from '../start/prepare_database.ts';
import { openHandOver } from './hand_over.ts';
import type { Door } from './messages.ts';
import { startWorkers } from './supervisor.ts';

/**
 * Serves with `[api] workers` processes. This process, the primary, prepares the database, accepts connections, hands
 * them over, and replaces workers that end. It does not read requests.
 *
 * @param options.program the file that a worker process runs
 * @throws Error with the remedy if the database cannot be used, no worker starts, or the address cannot be listened on.
 */
export async function serveByWorkers(
  config: Config,
  options: { readonly tls: Tls | undefined; readonly program: string; readonly logger: Logger },
): Promise<Listening> {
  const { tls, logger } = options;
  const forMetrics = metricsAddress(config);
  const database = await openConfiguredDatabase(config, { warn: (line) => logger.warn(line) });
  try {
    await prepareDatabase(database, config.placementDatabase);
  } finally {
    await database.close();
  }
  const prepared = { ...config, placementDatabase: { ...config.placementDatabase, syncOnStartup: false } };
  const handOver = openHandOver();
  const workers = await startWorkers({ ...options, config: prepared, handOver });
  const acceptors: net.Server[] = [];
  const accept = async (address: Address, door: Door): Promise<string> => {
    // Only the workers read from the connections.
    const acceptor = net.createServer({ pauseOnConnect: true }, (connection) => handOver.give(connection, door));
    const bound = await bind(acceptor, address, door);
    acceptors.push(acceptor);
    return `${tls === undefined ? 'http' : 'https'}://${bound}`;
  };
  try {
    const metricsUrl = forMetrics === undefined ? undefined : await accept(forMetrics, 'metrics');
    return {
      url: await accept(config.api, 'api'),
      metricsUrl,
      renewTls: workers.renewTls,
      renewServiceUser: workers.renewServiceUser,
      reopenLogs: workers.reopenLogs,
      close: async () => {
        await sleep(acceptMs);
        for (const acceptor of acceptors) acceptor.close();
        handOver.close();
        await workers.end();
      },
    };
  } catch (error) {
    for (const acceptor of acceptors) acceptor.close();
    await workers.end();
    throw error;
  }
}
