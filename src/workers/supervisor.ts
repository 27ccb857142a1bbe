import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import net from 'node:net';
import type { Logger } from 'pino';
import type { ServiceUserTrial } from '../access/keystone/service_token.ts';
import { keystoneTimeBudgetMs } from '../access/keystone/settings.ts';
import { policyProblems } from '../access/policy/policy.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { metricsAddress } from '../http/metrics.ts';
import { type Address, acceptLast, bind, type Listening, mostWaiting, urlOf } from '../http/server/listen.ts';
import type { Tls } from '../http/server/tls_files.ts';
import { openConfiguredDatabase, prepareDatabase } from '../start/database.ts';
import { ask } from './ask.ts';
import { openWorkerFigures } from './figures.ts';
import type { FromWorker, ListenerName, ToWorker } from './messages.ts';

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
  // Each worker would find the same mistakes.
  const mistakes = policyProblems(config.osloPolicy);
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  const prepared = { ...config, placementDatabase: { ...config.placementDatabase, syncOnStartup: false } };
  const distributor = openDistributor();
  const workers = await startWorkers({ ...options, config: prepared, distributor });
  const acceptors: net.Server[] = [];
  const accept = async (address: Address, listener: ListenerName): Promise<string> => {
    // Only the workers read from the connections.
    const acceptor = net.createServer({ pauseOnConnect: true }, (connection) => distributor.give(connection, listener));
    const bound = await bind(acceptor, address, listener);
    acceptors.push(acceptor);
    return urlOf(tls === undefined ? 'http' : 'https', bound);
  };
  try {
    const metricsUrl = forMetrics === undefined ? undefined : await accept(forMetrics, 'metrics');
    return {
      url: await accept(config.api, 'api'),
      metricsUrl,
      renewTls: workers.renewTls,
      renewServiceUser: workers.renewServiceUser,
      tryServiceUser: workers.tryServiceUser,
      renewPolicy: workers.renewPolicy,
      renewLogs: workers.renewLogs,
      close: () =>
        workers.end(async () => {
          await acceptLast(acceptors);
          for (const acceptor of acceptors) acceptor.close();
          distributor.close();
        }),
    };
  } catch (error) {
    await workers.end(async () => {
      for (const acceptor of acceptors) acceptor.close();
    });
    throw error;
  }
}

/** The worker processes of a service, each replaced when it ends. */
export type Workers = {
  /** Uses another certificate for new connections, in the present workers and in later ones. */
  renewTls(tls: Tls): void;
  /** Uses another service user for Keystone, in the present workers and in later ones. */
  renewServiceUser(settings: Config['keystoneAuthtoken']): void;
  /** Lets one worker request a token of this service user. */
  tryServiceUser(settings: Config['keystoneAuthtoken']): Promise<ServiceUserTrial>;
  /**
   * Makes every worker read the policy files again. Workers that start later use these settings, unless the files have a mistake.
   *
   * @returns why rules stay as they were, one sentence for each reason
   */
  renewPolicy(settings: Config['osloPolicy']): Promise<readonly string[]>;
  /** Makes every worker log by these settings, and reopen its log file by its name; also workers that start later. */
  renewLogs(settings: Config['default']): void;
  /**
   * Stops accepting connections, which the workers still serve, and then makes every worker finish its requests and end. Resolves when
   * all have ended; no worker is replaced any more.
   */
  end(stopAccepting: () => Promise<void>): Promise<void>;
};

/** The options of `startWorkers`. */
type WorkersOptions = {
  readonly config: Config;
  readonly tls: Tls | undefined;
  /** The file that a worker process runs. */
  readonly program: string;
  readonly distributor: ConnectionDistributor;
  readonly logger: Logger;
};

/** A worker that served for this long did not fail at its start. */
const steadyMs = 10_000;

/** How long a worker may take to read its policy files again, while it also serves. */
const answerMs = 5_000;

/** When workers that do not end are killed. Workers wait 25 s for requests under way. */
const killAfterMs = 27_000;

/**
 * Starts `[api] workers` processes, and resolves when each of them serves or has failed once.
 *
 * @throws Error if all of them failed; each of them has logged why.
 */
async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { distributor, logger, program } = options;
  let { config } = options;
  const count = config.api.workers;
  let { tls } = options;
  let ending = false;
  /** The numbers of the workers, by their processes. */
  const running = new Map<ChildProcess, number>();
  const serving = new Set<ChildProcess>();
  const figures = openWorkerFigures(() => [...serving], config.metrics.shapesInterval * 1000);
  // If this process ends at once, no other process would end the workers.
  process.on('exit', () => {
    for (const child of running.keys()) child.kill('SIGKILL');
  });

  /** Starts the worker with this number, after so many `failures` in a row. */
  const start = (worker: number, failures: number, settled: (serves: boolean) => void): void => {
    const child = fork(program, { serialization: 'advanced' });
    let servingSinceMs: number | undefined;
    let leaving = false;
    running.set(child, worker);
    figures.answer(child);
    child.on('message', ({ kind }: FromWorker) => {
      // A worker that is stopped while it starts reports both, in any order.
      if (kind === 'ready' && !leaving) {
        servingSinceMs = performance.now();
        serving.add(child);
        distributor.add(child);
        settled(true);
      }
      if (kind === 'leaving') {
        leaving = true;
        // Where all processes got the signal, this one may handle its own later in this turn. Then workers serve until the end, since
        // the last connections would find none.
        setImmediate(() => ending || retire(child));
      }
    });
    const ended = (code: number | null, signal: NodeJS.Signals | null): void => {
      running.delete(child);
      serving.delete(child);
      settled(false);
      if (ending) return;
      const servedMs = servingSinceMs === undefined ? 0 : performance.now() - servingSinceMs;
      const isFailure = !leaving && servedMs < steadyMs;
      const restartMs = isFailure ? restartDelayMs(failures) : 0;
      const log = leaving ? logger.info : logger.error;
      log.call(logger, { worker, pid: child.pid, code, signal, restartMs }, 'A worker ended and is replaced');
      figures.countRestart();
      const again = () => ending || start(worker, isFailure ? failures + 1 : 0, () => {});
      setTimeout(again, restartMs);
    };
    child.once('exit', ended);
    child.on('error', (err) => {
      logger.error({ err, worker }, 'A worker cannot be reached');
      if (child.pid === undefined) ended(null, null);
    });
    send(child, { kind: 'start', worker, config, tls });
  };
  const retire = (child: ChildProcess): void => {
    serving.delete(child);
    distributor.remove(child);
    send(child, { kind: 'end' });
  };

  const first = await Promise.all(
    Array.from({ length: count }, (_, index) => new Promise<boolean>((resolve) => start(index + 1, 0, resolve))),
  );
  if (!first.includes(true)) {
    ending = true;
    for (const child of running.keys()) child.kill('SIGKILL');
    throw new Error(`None of the ${count} workers could serve; the error of each one is logged above.`);
  }
  return {
    renewTls: (renewed) => {
      tls = renewed;
      for (const child of running.keys()) send(child, { kind: 'renewTls', tls });
    },
    renewServiceUser: (settings) => {
      config = { ...config, keystoneAuthtoken: settings };
      for (const child of running.keys()) send(child, { kind: 'renewServiceUser', settings });
    },
    tryServiceUser: async (settings) => {
      const [child] = serving.keys();
      const timeoutMs = keystoneTimeBudgetMs(settings) + answerMs;
      const answer =
        child &&
        (await ask(
          child,
          (id) => ({ kind: 'tryServiceUser', id, settings }),
          (message) => message.kind === 'serviceUserTried',
          timeoutMs,
        ));
      return answer === undefined ? { isRefused: false, reason: 'No worker could ask Keystone.' } : answer.trial;
    },
    renewPolicy: async (settings) => {
      // All workers read the same files, so that either all of them take the rules, or none.
      const problems = policyProblems(settings);
      if (problems.length > 0) return problems;
      config = { ...config, osloPolicy: settings };
      // One that does not serve yet reads the files when it begins to.
      const requests = [...running].map(async ([child, worker]) => {
        const isServing = serving.has(child);
        const answer = await ask(
          child,
          (id) => ({ kind: 'renewPolicy', id, settings }),
          (message) => message.kind === 'policyRenewed',
          answerMs,
        );
        if (answer === undefined && serving.has(child))
          logger.warn(
            { worker, waitedMs: answerMs },
            'A worker does not answer: it has the former policy until it does',
          );
        return { worker, isServing, problems: answer?.problems ?? [] };
      });
      return problemsOfAll((await Promise.all(requests)).filter(({ isServing }) => isServing));
    },
    renewLogs: (settings) => {
      config = { ...config, default: settings };
      for (const child of running.keys()) send(child, { kind: 'renewLog', settings });
    },
    end: async (stopAccepting) => {
      ending = true;
      await stopAccepting();
      const killTimer = setTimeout(() => {
        for (const child of running.keys()) child.kill('SIGKILL');
      }, killAfterMs);
      const gone = [...running.keys()].map((child) => new Promise((resolve) => child.once('exit', resolve)));
      for (const child of running.keys()) retire(child);
      await Promise.all(gone);
      clearTimeout(killTimer);
    },
  };
}

/** The problems that workers report, each with the workers that have it, unless all have it. */
function problemsOfAll(
  answers: readonly { readonly worker: number; readonly problems: readonly string[] }[],
): readonly string[] {
  const workersOf = new Map<string, readonly number[]>();
  for (const { worker, problems } of answers) {
    for (const problem of problems) workersOf.set(problem, [...(workersOf.get(problem) ?? []), worker]);
  }
  return [...workersOf].map(([problem, workers]) =>
    workers.length === answers.length ? problem : `Worker ${workers.join(' and worker ')}: ${problem}`,
  );
}

/**
 * After the first failure a worker is replaced at once. The delay grows with each further failure, so that starts do
 * not use up the CPU.
 */
const restartDelayMs = (failures: number): number =>
  failures === 0 ? 0 : Math.min(30_000, 1_000 * 2 ** (failures - 1));

/** Sends a message to a worker. If the worker has ended already, nothing is sent; the event 'exit' handles that. */
function send(child: ChildProcess, message: ToWorker): void {
  if (child.connected) child.send(message, () => {});
}

/** Hands the connections that the primary accepts to its workers. */
export type ConnectionDistributor = {
  /** From now on the worker gets connections, until `remove` is called or its process ends. */
  add(worker: ChildProcess): void;
  remove(worker: ChildProcess): void;
  /** Hands a connection to a worker. Without a worker the connection waits for one. */
  give(connection: Socket, listener: ListenerName): void;
  /** Closes the connections that wait for a worker, and all later connections. */
  close(): void;
};

type AcceptedConnection = {
  readonly connection: Socket;
  readonly listener: ListenerName;
  /** When it is closed unless a worker has taken it, by `performance.now()`. */
  readonly closeAtMs: number;
};

type Load = {
  /** Connections handed over that the worker has not taken yet, by id. */
  readonly underWay: Map<number, AcceptedConnection>;
  open: number;
};

/**
 * How long a connection waits for a worker. If no worker can start, for example without the database, the client or a load balancer then
 * retries on another machine.
 */
const longestWaitMs = 10_000;

/**
 * Neither node:cluster nor SO_REUSEPORT is used. With node:cluster, a connection that is being sent to a worker that
 * dies stays open for ever without an answer; and a new worker gets as many new connections as the other workers, which
 * already have many. With SO_REUSEPORT, few clients with long-lived connections, such as schedulers, would often share
 * one worker while other workers are idle.
 */
export function openDistributor(): ConnectionDistributor {
  const loads = new Map<ChildProcess, Load>();
  const waiting = new Set<AcceptedConnection>();
  let closed = false;
  let lastId = 0;

  /**
   * The worker with the fewest connections that it has not taken yet, so that a busy worker gets none while another is
   * free; among equal ones the worker with the fewest open connections.
   */
  const leastLoaded = (): [ChildProcess, Load] | undefined => {
    let least: [ChildProcess, Load] | undefined;
    for (const [worker, load] of loads) {
      if (!worker.connected) continue;
      const by = least === undefined ? -1 : load.underWay.size - least[1].underWay.size || load.open - least[1].open;
      if (by < 0) least = [worker, load];
    }
    return least;
  };
  const sendTo = (worker: ChildProcess, load: Load, accepted: AcceptedConnection): void => {
    lastId += 1;
    load.open += 1;
    load.underWay.set(lastId, accepted);
    // The connection stays open in this process until the worker confirms it. If the worker dies before, another worker gets the
    // connection.
    const message: ToWorker = { kind: 'connection', id: lastId, listener: accepted.listener };
    worker.send(message, accepted.connection, { keepOpen: true }, () => {});
  };
  const give = (accepted: AcceptedConnection): void => {
    if (closed) {
      accepted.connection.destroy();
      return;
    }
    const least = leastLoaded();
    if (least !== undefined) sendTo(...least, accepted);
    else if (waiting.size < mostWaiting) wait(accepted);
    else accepted.connection.destroy();
  };
  const wait = (accepted: AcceptedConnection): void => {
    waiting.add(accepted);
    const closeWaiting = (): void => {
      if (waiting.delete(accepted)) accepted.connection.destroy();
    };
    setTimeout(closeWaiting, Math.max(0, accepted.closeAtMs - performance.now())).unref();
  };

  return {
    add: (worker) => {
      const load: Load = { underWay: new Map(), open: 0 };
      loads.set(worker, load);
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'released') load.open -= 1;
        if (message.kind !== 'taken') return;
        load.underWay.get(message.id)?.connection.destroy();
        load.underWay.delete(message.id);
      });
      worker.once('exit', () => {
        loads.delete(worker);
        whenAllReceived(worker, () => {
          // A worker confirms a connection before it reads from it, so nothing was read from these connections.
          for (const accepted of load.underWay.values()) give(accepted);
        });
      });
      // The set is cleared first, because a connection that still finds no worker is added again.
      const waited = [...waiting];
      waiting.clear();
      for (const accepted of waited) give(accepted);
    },
    remove: (worker) => {
      loads.delete(worker);
    },
    give: (connection, listener) => {
      connection.on('error', () => {});
      give({ connection, listener, closeAtMs: performance.now() + longestWaitMs });
    },
    close: () => {
      closed = true;
      for (const { connection } of waiting) connection.destroy();
      waiting.clear();
    },
  };
}

/**
 * Calls back when all messages of a process have been received, which may be after its exit. The event 'disconnect'
 * cannot be used: it is not emitted for a process that was killed while it sent a message.
 */
function whenAllReceived(ended: ChildProcess, call: () => void): void {
  if (ended.connected) setImmediate(whenAllReceived, ended, call);
  else call();
}
