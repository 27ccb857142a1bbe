import type { Snapshot, TableState } from './snapshot.ts';

/** What a part of the run came to. */
export type Figures = {
  readonly seconds: number;
  readonly operationsPerSecond: number;
  /** A claim together with its release; a move counts as half of it. */
  readonly pairsPerSecond: number;
  /** CPU time in milliseconds per operation. */
  readonly serverCpuMs: number;
  readonly databaseCpuMs: number;
  readonly walBytesPerPair: number;
  readonly xidsPerPair: number;
  readonly multixacts: number;
  /** The part of all updates that were HOT, 0 to 1. */
  readonly hotShare: number;
  readonly deadlocks: number;
  readonly temporaryFiles: number;
  readonly conflicts: number;
  /** At the end of this part. */
  readonly residentMb: number;
  readonly logRows: number;
  readonly tables: readonly TableState[];
};

/** The figures between two moments. */
export function figuresBetween(from: Snapshot, to: Snapshot): Figures {
  const since = (figure: (snapshot: Snapshot) => number): number => figure(to) - figure(from);
  const seconds = since(({ atMs }) => atMs) / 1000;
  const writes = since(({ done }) => done.claims + done.releases + done.moves);
  const pairs = writes / 2;
  const operations = writes + since(({ done }) => done.reads + done.conflicts);
  return {
    seconds,
    operationsPerSecond: operations / seconds,
    pairsPerSecond: pairs / seconds,
    serverCpuMs: since(({ serverCpuMs }) => serverCpuMs) / operations,
    databaseCpuMs: since(({ databaseCpuMs }) => databaseCpuMs) / operations,
    walBytesPerPair: since(({ counters }) => counters.walBytes) / pairs,
    xidsPerPair: since(({ counters }) => counters.xids) / pairs,
    multixacts: since(({ counters }) => counters.multixacts),
    hotShare: since(({ counters }) => counters.hotUpdates) / since(({ counters }) => counters.updates),
    deadlocks: since(({ counters }) => counters.deadlocks),
    temporaryFiles: since(({ counters }) => counters.temporaryFiles),
    conflicts: since(({ done }) => done.conflicts),
    residentMb: to.residentMb,
    logRows: to.logRows,
    tables: to.tables,
  };
}

const rowsOfReport: readonly (readonly [string, (figures: Figures) => string])[] = [
  ['operations per second', ({ operationsPerSecond }) => operationsPerSecond.toFixed(0)],
  ['claims with their releases per second', ({ pairsPerSecond }) => pairsPerSecond.toFixed(0)],
  ['CPU ms per operation, service', ({ serverCpuMs }) => serverCpuMs.toFixed(3)],
  ['CPU ms per operation, database', ({ databaseCpuMs }) => databaseCpuMs.toFixed(3)],
  ['WAL bytes per claim and release', ({ walBytesPerPair }) => walBytesPerPair.toFixed(0)],
  ['transaction ids per claim and release', ({ xidsPerPair }) => xidsPerPair.toFixed(2)],
  ['multixacts', ({ multixacts }) => `${multixacts}`],
  ['HOT updates, % of all', ({ hotShare }) => (100 * hotShare).toFixed(1)],
  ['deadlocks, temporary files', ({ deadlocks, temporaryFiles }) => `${deadlocks}, ${temporaryFiles}`],
  ['answers 409', ({ conflicts }) => `${conflicts}`],
  ['memory of the service, MB', ({ residentMb }) => residentMb.toFixed(0)],
  ['rows of the change log', ({ logRows }) => `${logRows}`],
  ['size of tables, MB', ({ tables }) => megabytes(total(tables, ({ tableBytes }) => tableBytes))],
  ['size of indexes, MB', ({ tables }) => megabytes(total(tables, ({ indexBytes }) => indexBytes))],
  ['dead rows', ({ tables }) => `${total(tables, ({ deadRows }) => deadRows)}`],
];

/** The report as lines: the first part beside the last one, and then the tables that grew. */
export function reportLines(first: Figures, last: Figures): readonly string[] {
  const inColumns = (cells: readonly string[]): string => cells.map((cell) => cell.padStart(14)).join('');
  const grown = last.tables.flatMap((table) => {
    const before = first.tables.find(({ name }) => name === table.name);
    const [was, is] = [bytesOf(before), bytesOf(table)];
    return is > was * 1.1 ? [`${table.name.padEnd(40)}${inColumns([was, is].map(megabytes))}`] : [];
  });
  const heading = [`the first ${first.seconds.toFixed(0)} s`, `the last ${last.seconds.toFixed(0)} s`];
  return [
    `${' '.repeat(40)}${inColumns(heading)}`,
    ...rowsOfReport.map(([name, of]) => `${name.padEnd(40)}${inColumns([of(first), of(last)])}`),
    '',
    grown.length === 0
      ? 'No table grew by more than a tenth.'
      : `${'What grew by more than a tenth, MB with indexes'.padEnd(40)}`,
    ...grown,
  ];
}

const total = (tables: readonly TableState[], of: (table: TableState) => number): number =>
  tables.reduce((sum, table) => sum + of(table), 0);

const bytesOf = (table: TableState | undefined): number =>
  table === undefined ? 0 : table.tableBytes + table.indexBytes;

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
