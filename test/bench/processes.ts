import { readdirSync, readFileSync } from 'node:fs';

/*
 * What processes have used, from /proc. On systems without it every figure is NaN. The figures of a process include all
 * its descendants, also those that have ended.
 */

/** CPU time, user and system, in milliseconds. Linux counts it in hundredths of a second. */
export function cpuMs(pids: readonly number[]): number {
  return sum(pids.flatMap(withDescendants).map(({ cpu }) => cpu * 10));
}

/** Resident memory in MB (10^6 bytes). Shared pages count in each process. */
export function residentMb(pids: readonly number[]): number {
  const pageBytes = 4096;
  return sum(pids.flatMap(withDescendants).map(({ residentPages }) => residentPages * pageBytes)) / 1e6;
}

/** A process and its descendants, without zombies. */
export function runningTree(pid: number): readonly number[] {
  return withDescendants(pid)
    .filter(({ state }) => state !== 'Z')
    .map((row) => row.pid);
}

/** The program and arguments of a process; empty if it has ended. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

type ProcessRow = {
  readonly pid: number;
  readonly parent: number;
  /** One letter. `Z` is a zombie. */
  readonly state: string;
  /** In clock ticks. */
  readonly cpu: number;
  readonly residentPages: number;
};

const sum = (figures: readonly number[]): number =>
  figures.length === 0 ? Number.NaN : figures.reduce((total, figure) => total + figure, 0);

function withDescendants(pid: number): readonly ProcessRow[] {
  const rows = allProcesses();
  const found = rows.filter((row) => row.pid === pid);
  for (const { pid: parent } of found) found.push(...rows.filter((row) => row.parent === parent));
  return found;
}

function allProcesses(): readonly ProcessRow[] {
  let names: readonly string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return [];
  }
  return names.filter((name) => /^\d+$/.test(name)).flatMap((name) => rowOf(Number(name)) ?? []);
}

/** See proc_pid_stat(5); the name, field 2, may hold spaces and parentheses. */
function rowOf(pid: number): ProcessRow | undefined {
  try {
    const [state = '', parent, ...rest] = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    const field = (number: number): number => Number(rest[number - 5]);
    return {
      pid,
      parent: Number(parent),
      state,
      cpu: field(14) + field(15) + field(16) + field(17),
      residentPages: field(24),
    };
  } catch {
    return undefined; // it has ended
  }
}

/** Whether a process exists that has not ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
