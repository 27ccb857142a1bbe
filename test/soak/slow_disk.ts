import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { hasPrograms } from '../support/debian_packages.ts';

/** The system calls that wait for a disk. */
const calls = 'fsync,fdatasync,sync_file_range,pwrite64,pwritev';

/** Whether `strace`, a package of Debian, can delay calls of other processes here. */
export const canSlowDisk = (): boolean => hasPrograms(canTrace, ['strace']);

/** Some systems let a program trace only what it has started itself. */
function canTrace(): boolean {
  const other = spawn('sleep', ['0.2'], { stdio: 'ignore' });
  return spawnSync('strace', [...tracing(1), '-p', `${other.pid}`], { stdio: 'ignore' }).status === 0;
}

const tracing = (delayMs: number) => [
  ...['-f', '-q', '-o', '/dev/null'],
  ...['-e', `trace=${calls}`, '-e', `inject=${calls}:delay_enter=${delayMs * 1000}`],
];

/**
 * Delays each write to the disk by some processes, and by the processes that they start.
 *
 * @returns a function that ends the delay, and tells whether it lasted until then
 */
export function slowDisk(pids: readonly number[], delayMs: number): () => Promise<boolean> {
  const to = pids.flatMap((pid) => ['-p', `${pid}`]);
  const tracer = spawn('strace', [...tracing(delayMs), ...to], { stdio: 'ignore' });
  const ended = once(tracer, 'exit');
  return async () => {
    // It ends by itself if it cannot trace any of them.
    const isTracing = tracer.exitCode === null;
    tracer.kill('SIGTERM');
    await ended;
    return isTracing;
  };
}

/** A process, and those that it has started. */
export async function familyOf(pid: number): Promise<readonly number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return [pid, ...children.split(' ').filter(Boolean).map(Number)];
}
