import type { Measurement } from './measure.ts';

/** One row of the table: a workload on a server. */
export type Row = {
  readonly workload: string;
  /** Providers without children, or trees; undefined for a limit. */
  readonly size: number | undefined;
  readonly server: string;
  readonly medians: Measurement;
  readonly rounds: readonly Measurement[];
};

const columns = [
  'workload'.padEnd(56),
  'size'.padStart(7),
  ` ${'server'.padEnd(14)}`,
  ...['per s', 'p50 ms', 'p99 ms', 'server', 'database', 'ratio', 'cpu x'].map((title) => title.padStart(9)),
];

/** The columns `server` and `database` have CPU milliseconds per operation. */
export const heading = `${' '.repeat(106)}CPU ms per op\n${columns.join('')}`;

/** @param first the row of the first server for the same workload; the ratios refer to it */
export function line({ workload, size, server, medians }: Row, first: Row | undefined): string {
  const ratios =
    first === undefined
      ? ['', '']
      : [times(medians.perSecond / first.medians.perSecond), times(cpu(first.medians) / cpu(medians))];
  const { perSecond, p50Ms, p99Ms, serverCpuMs, databaseCpuMs, note } = medians;
  const figures = [perSecond, p50Ms, p99Ms, serverCpuMs, databaseCpuMs].map(inDigits);
  const cells = [...figures, ...ratios].map((cell) => cell.padStart(9)).join('');
  return `${workload.padEnd(56)}${`${size ?? ''}`.padStart(7)} ${server.padEnd(14)}${cells}  ${note ?? ''}`.trimEnd();
}

/**
 * The cost of each workload at the largest size divided by that at the smallest: CPU time, and time at equal
 * concurrency.
 */
export function growthLines(rows: readonly Row[]): readonly string[] {
  const key = ({ workload, server }: Row): string => `${workload.padEnd(56)} ${server.padEnd(14)}`;
  return [...new Set(rows.map(key))].flatMap((name) => {
    const sizes = rows
      .filter((row) => row.size !== undefined && key(row) === name)
      .toSorted((left, right) => Number(left.size) - Number(right.size));
    const [smallest, largest] = [sizes[0], sizes.at(-1)];
    if (smallest === undefined || largest === undefined || smallest === largest) return [];
    const cpuGrowth = times(cpu(largest.medians) / cpu(smallest.medians));
    const timeGrowth = times(smallest.medians.perSecond / largest.medians.perSecond);
    return [`${name}${cpuGrowth.padStart(9)}${timeGrowth.padStart(9)}  from ${smallest.size} to ${largest.size}`];
  });
}

/**
 * What an operation costs on each server, in CPU milliseconds of server and database together, and how many times as
 * much as on the first server.
 */
export function costTable(rows: readonly Row[]): readonly string[] {
  const inColumns = (title: string, cells: readonly string[]): string =>
    `${title.padEnd(63)}${cells.map((cell) => cell.padStart(17)).join('')}`;
  const lines = Map.groupBy(rows, ({ workload, size }) => `${workload.padEnd(56)}${`${size}`.padStart(7)}`);
  return [
    inColumns(`${'CPU ms per operation'.padEnd(56)}   size`, [...new Set(rows.map(({ server }) => server))]),
    ...[...lines].map(([title, measured]) => {
      const [first = Number.NaN, ...others] = measured.map(({ medians }) => cpu(medians));
      return inColumns(title, [inDigits(first), ...others.map((cost) => `${inDigits(cost)} (${times(cost / first)})`)]);
    }),
  ];
}

/** CPU time of server and database together. */
const cpu = ({ serverCpuMs, databaseCpuMs }: Measurement): number =>
  serverCpuMs + (Number.isNaN(databaseCpuMs) ? 0 : databaseCpuMs);

const times = (ratio: number): string => (Number.isFinite(ratio) ? `${inDigits(ratio)}x` : '-');

function inDigits(figure: number): string {
  if (!Number.isFinite(figure)) return '-';
  return figure.toFixed(figure >= 100 ? 0 : figure >= 10 ? 1 : figure >= 1 ? 2 : 3);
}
