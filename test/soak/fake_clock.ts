import { execFileSync } from 'node:child_process';
import { chmod, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from '../bench/processes.ts';
import { hasPrograms } from '../support/debian_packages.ts';

/** The clock of processes, which can be set while they run. It needs the program `faketime`, a package of Debian. */
export type FakeClock = {
  /** Processes that are started with this environment have this clock. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sets it ahead of the real time by these seconds (behind it if negative), and waits until all processes have it. */
  set(seconds: number): Promise<void>;
  /** Removes what processes that were killed have left in shared memory. */
  close(): Promise<void>;
};

/** How long a process keeps what it has read. */
const keptSeconds = 1;

/** The library of `faketime`. Undefined where it is not there and cannot be installed. */
function library(): string | undefined {
  // A process of the same number that was killed has left its semaphore, so that one attempt may fail.
  const look = (attempts = 5): string => {
    try {
      return execFileSync('faketime', ['-m', '-f', '+0', 'printenv', 'LD_PRELOAD'], { encoding: 'utf8' }).trim();
    } catch (error) {
      if (attempts === 1) throw error;
      return look(attempts - 1);
    }
  };
  const isThere = (): boolean => {
    try {
      return look() !== '';
    } catch {
      return false;
    }
  };
  return hasPrograms(isThere, ['faketime']) ? look() : undefined;
}

/** Undefined where the clock of a process cannot be set. */
export async function openFakeClock(folder: string): Promise<FakeClock | undefined> {
  const preload = library();
  if (preload === undefined) return undefined;
  const file = path.join(folder, 'clock');
  const write = (seconds: number) => writeFile(file, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  await write(0);
  await chmod(file, 0o644); // PostgreSQL runs as another user
  return {
    environment: {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: `${keptSeconds}`,
      // As when an administrator sets a clock: clocks that measure durations continue.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    set: async (seconds) => {
      await write(seconds);
      // The library counts whole seconds, so it may keep what it has read for almost one more.
      await sleep((keptSeconds + 1) * 1000 + 200);
    },
    close: async () => {
      for (const name of await readdir(sharedMemory)) {
        const [, pid] = /^(?:sem\.)?faketime_(?:shm|sem)_(\d+)$/.exec(name) ?? [];
        if (pid !== undefined && !isRunning(Number(pid))) await rm(path.join(sharedMemory, name), { force: true });
      }
    },
  };
}

/** Where the library keeps what the processes of one command share. */
const sharedMemory = '/dev/shm';
