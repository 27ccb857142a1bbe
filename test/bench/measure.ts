import { type Bounds, closedLoop, median, quantile, type Timing } from './closed_loop.ts';
import { type Connection, connect } from './connection.ts';
import type { MeasuredServer } from './measured_server.ts';
import { cpuMs } from './processes.ts';

/** The result of one measured load. Times and CPU times are milliseconds per operation. NaN if a time is not known. */
export type Measurement = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the processes of the server. */
  readonly serverCpuMs: number;
  /** CPU time of the processes of its database. */
  readonly databaseCpuMs: number;
  /** CPU time of this process, which makes the load. */
  readonly clientCpuMs: number;
  readonly operations: number;
  /** A remark about the result. */
  readonly note?: string;
};

/** The number of connections of a load: in all, or to each process of the server. */
export type Concurrency = number | { readonly eachProcess: number };

/** How many times as long as with one process a load takes, so that each process does as much as one process does alone. */
export const sharesOf = (concurrency: Concurrency, { urls }: Pick<MeasuredServer, 'urls'>): number =>
  typeof concurrency === 'number' ? 1 : urls().length;

/** The concurrency in the name of a workload. */
export const inName = (concurrency: Concurrency): string =>
  typeof concurrency === 'number' ? `c${concurrency}` : `c${concurrency.eachProcess} each`;

/** One step of a load: a caller repeats it over its connection. */
export type Operation = (connection: Connection, call: number) => Promise<void>;

/**
 * A closed loop over connections that are spread over the processes of the server, after a warm-up of a quarter of the
 * time.
 *
 * @param bounds.coldStart leaves out the warm-up, for loads in which every operation counts
 */
export async function measure(
  server: MeasuredServer,
  concurrency: Concurrency,
  { coldStart = false, durationMs, most = Number.POSITIVE_INFINITY }: Bounds & { readonly coldStart?: boolean },
  operation: Operation,
): Promise<Measurement> {
  const shares = sharesOf(concurrency, server);
  const bounds = { durationMs: durationMs * shares, most: most * shares };
  const connected = typeof concurrency === 'number' ? concurrency : concurrency.eachProcess * shares;
  return withConnections(server, connected, async (connections) => {
    if (!coldStart) await closedLoop(connections, { durationMs: bounds.durationMs / 4 }, operation);
    return figuresOf(server, () => closedLoop(connections, bounds, operation));
  });
}

/** The figures of a load: of its operations, and what CPU time the processes took meanwhile. */
export async function figuresOf(
  server: Pick<MeasuredServer, 'pids' | 'databasePid'>,
  load: () => Promise<Timing>,
): Promise<Measurement> {
  const pids = { server: server.pids(), database: server.databasePid === undefined ? [] : [server.databasePid] };
  const before = [cpuMs(pids.server), cpuMs(pids.database), ownCpuMs()] as const;
  const { timesMs, elapsedMs } = await load();
  const operations = timesMs.length;
  return {
    perSecond: (operations * 1000) / elapsedMs,
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
    clientCpuMs: (ownCpuMs() - before[2]) / operations,
    serverCpuMs: (cpuMs(pids.server) - before[0]) / operations,
    databaseCpuMs: (cpuMs(pids.database) - before[1]) / operations,
    operations,
  };
}

/** Repeats the operation `most` times as fast as possible, without measuring it. It ends earlier if the time is up. */
export async function perform(
  server: MeasuredServer,
  { most = Number.POSITIVE_INFINITY, durationMs = Number.POSITIVE_INFINITY }: Partial<Bounds>,
  operation: Operation,
): Promise<void> {
  await withConnections(server, Math.min(32, most), async (connections) => {
    await closedLoop(connections, { most, durationMs }, operation);
  });
}

export async function withConnections<T>(
  server: Pick<MeasuredServer, 'urls'>,
  count: number,
  use: (connections: readonly Connection[]) => Promise<T>,
  options: Parameters<typeof connect>[1] = {},
): Promise<T> {
  const urls = server.urls();
  const connections: Connection[] = [];
  try {
    for (let index = 0; index < count; index += 1)
      connections.push(await connect(urls[index % urls.length] ?? '', options));
    return await use(connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Calls back with a connection to the first process. */
export async function withConnection<T>(
  { urls }: Pick<MeasuredServer, 'urls'>,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await connect(urls()[0] ?? '');
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

/** The medians of several rounds, and the last note. */
export function medians(rounds: readonly Measurement[]): Measurement {
  const of = (figure: Exclude<keyof Measurement, 'note'>): number => median(rounds.map((round) => round[figure]));
  const note = rounds.at(-1)?.note;
  return {
    perSecond: of('perSecond'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    serverCpuMs: of('serverCpuMs'),
    databaseCpuMs: of('databaseCpuMs'),
    clientCpuMs: of('clientCpuMs'),
    operations: of('operations'),
    ...(note === undefined ? {} : { note }),
  };
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
