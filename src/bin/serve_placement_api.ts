import { execFile } from 'node:child_process';
import path from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Override } from '../config/sources.ts';
import { version } from '../config/version.ts';
import { metricsAddress } from '../http/metrics.ts';
import { checkAddresses, type Listening, listen } from '../http/server/listen.ts';
import { listenForOperator, operatorSocket } from '../http/server/operator_socket.ts';
import { endOf, readTls, type Tls } from '../http/server/tls_files.ts';
import { type Log, openLog } from '../log/log.ts';
import { watchCertificate } from '../start/certificate.ts';
import { type ConfigFlags, loadConfig, printWarnings } from '../start/config_flags.ts';
import { databaseWarning, describeDatabase, newDatabaseNotice } from '../start/database.ts';
import { giveBackMemory } from '../start/give_back_memory.ts';
import { openRenewal } from '../start/renew.ts';
import { openService, type PlacementService } from '../start/service.ts';
import {
  checkAuthentication,
  checkShapes,
  checkWorkers,
  exposureWarning,
  unconfiguredNotice,
} from '../start/startup.ts';
import { onStopSignal } from '../start/stop_signal.ts';
import { escapeControlsInLines, print } from '../text/print.ts';

/** The command line of placement-api. */
export type ApiFlags = ConfigFlags & {
  readonly host?: string;
  readonly port?: string;
  readonly workers?: string;
  readonly check?: true;
  readonly showConfig?: true;
};

/** The program of a worker, both in src/ and in dist/. */
const workerProgram = path.join(import.meta.dirname, `placement-api-worker${path.extname(import.meta.filename)}`);

/** Serves by the configuration of this process, or prints it. @param overrides the options of the command line, which replace its values */
export async function serve(flags: ApiFlags, overrides: readonly Override[]): Promise<void> {
  const read = (more: readonly Override[]): LoadedConfig => {
    const loaded = loadConfig(flags, more);
    checkShapes(loaded);
    return loaded;
  };
  const readAll = (): LoadedConfig & { readonly unconfigured: boolean } => {
    const written = read(overrides);
    const unconfigured = isUnconfigured(written);
    return { ...(unconfigured ? read([...overrides, withoutAuthentication]) : written), unconfigured };
  };
  const loaded = readAll();
  if (flags.showConfig) {
    printWarnings(loaded.warnings);
    const { showConfig } = await import('../config/show.ts');
    process.stdout.write(escapeControlsInLines(showConfig(loaded)));
    return;
  }
  const { config } = loaded;
  printWarnings(loaded.warnings);
  const warnings = [databaseWarning(loaded), exposureWarning(config)];
  checkAuthentication(config);
  checkWorkers(config);
  const forMetrics = metricsAddress(config);
  // Before the database is opened and workers start, which takes seconds. The service listens only when it can answer.
  await checkAddresses([[config.api, 'api'], ...(forMetrics === undefined ? [] : [[forMetrics, 'metrics'] as const])]);
  const tls = readTls(config.ssl);

  const log = openLog(config.default, undefined, config.api.workers > 1);
  const { logger } = log;
  const say = startLines(log);
  let close = async (): Promise<void> => {};
  onStopSignal(async (signal) => {
    logger.info({ signal }, 'Ending: no new requests are accepted, and the current ones are answered');
    await close();
  });
  // Without a handler the signal would end a process that still waits for its database.
  let isHungUp = false;
  let renew = async (): Promise<void> => {
    isHungUp = true;
  };
  process.on('SIGHUP', () => void renew());
  if (loaded.unconfigured) say.line(unconfiguredNotice(config));
  say.warnings(warnings, loaded.warnings);

  const notice = newDatabaseNotice(config.placementDatabase);
  const server = await (config.api.workers === 1 ? serveAlone : serveTogether)(config, tls, log).catch(say.failure);
  close = server.close;
  const noteCertificate = watchCertificate(logger);
  const renewTls = (renewed: Tls): void => {
    server.renewTls(renewed);
    noteCertificate(renewed);
  };
  renew = openRenewal({ ...server, renewTls }, config, { log, readAgain: readAll });
  noteCertificate(tls);
  if (isHungUp) void renew();
  if (notice !== undefined) say.line(notice);
  say.line(`placement-api serves the ${describeDatabase(config.placementDatabase)}`);
  if (server.metricsUrl !== undefined) say.line(`placement-api serves /metrics on ${server.metricsUrl}`);
  const listens = `placement-api ${version} listens on ${server.url}`;
  say.line(listens);
  notifySystemd(listens, logger);
}

async function serveAlone(config: Config, tls: Tls | undefined, { logger, health }: Log): Promise<Listening> {
  let endsMs = tls && endOf(tls);
  const service = await openService(config, {
    logger,
    logHealth: health,
    tlsEndsMs: () => endsMs,
    embeddedStopped: (err) => {
      logger.fatal({ err }, 'The process ends, since its embedded database cannot write to its files');
      process.exit(1);
    },
  });
  const { host, port, socketMode, clientTimeout } = config.api;
  const options = { clientTimeoutMs: clientTimeout * 1000, onRefused: service.onRefused, tls };
  const forMetrics = metricsAddress(config);
  const servers: Listening[] = [];
  let closeSocket = async (): Promise<void> => {};
  const close = async () => {
    service.endWaits();
    await Promise.all([closeSocket(), ...servers.map((server) => server.close())]);
    await service.close();
  };
  try {
    await giveBackMemory();
    if (service.metricsApp !== undefined && forMetrics !== undefined) {
      servers.push(await listen(service.metricsApp, { ...forMetrics, ...options, section: 'metrics' }));
    }
    const metricsUrl = servers[0]?.url;
    closeSocket = await openOperatorSocket(config, service, logger);
    const api = await listen(service.app, { host, port, socketMode, ...options });
    servers.push(api);
    return {
      url: api.url,
      metricsUrl,
      renewTls: (renewed) => {
        for (const server of servers) server.renewTls(renewed);
        endsMs = endOf(renewed);
      },
      tryServiceUser: service.tryServiceUser,
      renewServiceUser: service.renewServiceUser,
      renewPolicy: service.renewPolicy,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the socket in the folder of an embedded database. If it cannot be opened, the service serves, but commands cannot reach it. */
async function openOperatorSocket(
  { placementDatabase: { connection, embeddedPath } }: Config,
  { operatorApp }: PlacementService,
  logger: Logger,
): Promise<() => Promise<void>> {
  if (connection !== undefined || embeddedPath.startsWith('memory://')) return async () => {};
  const socket = operatorSocket(embeddedPath);
  return listenForOperator(operatorApp(), socket).catch((err: unknown) => {
    logger.warn({ err }, `"placement-manage token" cannot reach this process: ${socket} cannot be made`);
    return async () => {};
  });
}

async function serveTogether(
  config: Config,
  tls: Tls | undefined,
  { logger }: Pick<Log, 'logger'>,
): Promise<Listening> {
  // Imported only here, since a process that serves alone does not need it.
  const { serveByWorkers } = await import('../workers/supervisor.ts');
  return serveByWorkers(config, { tls, program: workerProgram, logger });
}

/** The lines of a start: for the terminal or systemd, and for the log file if there is one. */
type StartLines = {
  line(text: string): void;
  /** @param printed the lines that were printed before the log was opened */
  warnings(texts: readonly (string | undefined)[], printed: readonly string[]): void;
  /** @throws the error itself, which the command prints */
  failure(error: unknown): never;
};

/** Without a log file the log is on standard error, as these lines are. */
const startLines = ({ logger, health }: Pick<Log, 'logger' | 'health'>): StartLines => ({
  line: (text) => {
    print(text);
    if (health.file() !== undefined) logger.info(text);
  },
  warnings: (texts, printed) => {
    printWarnings(texts);
    if (health.file() === undefined) return;
    for (const text of [...printed, ...texts]) if (text !== undefined) logger.warn(text);
  },
  failure: (error) => {
    if (health.file() !== undefined) logger.fatal({ err: error }, 'The start failed');
    throw error;
  },
});

/**
 * If a systemd unit of Type=notify started this process, tells systemd that it is ready: `systemctl start` and
 * `restart` wait for that. The program systemd-notify sends the message, because Node.js cannot send to such a socket.
 * The unit must permit this with NotifyAccess=all.
 *
 * @param status the text that `systemctl status` shows
 */
function notifySystemd(status: string, logger: Logger): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  execFile('systemd-notify', ['--ready', `--status=${status}`], (err) => {
    if (err !== null) logger.error({ reason: err.message }, 'systemd could not be notified that the service is ready');
  });
}

/**
 * Whether nothing is configured: there is no file, and the environment has no option except DATABASE_URL. The service
 * then runs without authentication, because there are no settings of Keystone. Flags of the command line do not count:
 * they are for trying things out.
 */
const isUnconfigured = ({ files, settings }: LoadedConfig): boolean =>
  files.length === 0 &&
  settings.every(({ written }) => {
    if (written === undefined || written.source.from === 'command line') return true;
    return written.source.from === 'environment' && written.source.variable === 'DATABASE_URL';
  });

/** The setting of a service without configuration, instead of upstream's default, keystone. */
const withoutAuthentication: Override = {
  group: 'api',
  name: 'auth_strategy',
  text: 'noauth2',
  flag: 'no configuration',
};
