import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { hasPrograms } from '../debian_packages.ts';

/** The calls of the system that wait for a disk. */
const calls = 'fsync,fdatasync,sync_file_range,pwrite64,pwritev';

/** Whether `strace`, a package of Debian, can delay calls of other processes here. */
export const canSlowDisk = (): boolean =>
  hasPrograms(
    () => spawnSync('strace', ['-f', '-o', '/dev/null', ...delayed(1), 'true'], { stdio: 'ignore' }).status === 0,
    ['strace'],
  );

const delayed = (delayMs: number) => ['-e', `trace=${calls}`, '-e', `inject=${calls}:delay_enter=${delayMs * 1000}`];

/**
 * Makes each write to the disk of some processes, and of processes that they start, take so much longer.
 *
 * @returns ends it
 */
export async function slowDisk(pids: readonly number[], delayMs: number): Promise<() => Promise<void>> {
  const to = pids.flatMap((pid) => ['-p', `${pid}`]);
  const tracer = spawn('strace', ['-f', '-q', '-o', '/dev/null', ...delayed(delayMs), ...to], { stdio: 'ignore' });
  const ended = once(tracer, 'exit');
  return async () => {
    tracer.kill('SIGTERM');
    await ended;
  };
}

/** A process, and those that it has started. */
export async function familyOf(pid: number): Promise<readonly number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return [pid, ...children.split(' ').filter(Boolean).map(Number)];
}
