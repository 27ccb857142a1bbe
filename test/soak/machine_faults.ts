import { type FileHandle, open, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Random } from '../races/random.ts';
import type { Deployment } from './deployment.ts';
import { type Fault, forAWhile, type LeftOut } from './faults.ts';
import { familyOf, slowDisk } from './slow_disk.ts';

/* What goes wrong with the machine: its disk and its clock. */

/** Fills the disk for a while. If PostgreSQL ends by that, it is started again. */
export function fullDisk({ disk, database }: Deployment): Fault | LeftOut {
  const name = 'the disk is full';
  if (disk === undefined) return { name, reason: 'this user may not mount a file system' };
  return {
    name,
    happen: async (random) => {
      const file = path.join(disk, 'ballast');
      const ballast = await open(file, 'w');
      await fill(ballast, disk);
      await ballast.close();
      await forAWhile(random);
      await rm(file);
      await database?.primary.start();
    },
  };
}

/** Writes large pieces to a file, and then small ones, until its disk has no room. */
async function fill(file: FileHandle, disk: string): Promise<void> {
  for (const bytes of [2 ** 20, 4096]) {
    const piece = Buffer.alloc(bytes);
    try {
      for (;;) {
        const { bavail, bsize } = await statfs(disk);
        if (bavail * bsize < bytes) break;
        await file.write(piece);
      }
    } catch {
      // other processes write there as well
    }
  }
}

/** Each write of the database to its disk takes longer for a while. */
export function slowWrites({ canSlowDisk, servers, database }: Deployment): Fault | LeftOut {
  const name = 'the disk is slow';
  if (!canSlowDisk) return { name, reason: 'strace cannot be installed, or not delay calls of processes' };
  return {
    name,
    happen: async (random) => {
      const pid = database === undefined ? servers[0]?.pid : await database.primary.pid();
      if (pid === undefined) return false;
      const end = slowDisk(await familyOf(pid), 10 + random.below(150));
      await forAWhile(random);
      return end();
    },
  };
}

const hour = 3600;

/** The clock of a process of the service, or of PostgreSQL, is set forward, back, and right again. */
export function clockFaults({ clock, servers, database }: Deployment): readonly (Fault | LeftOut)[] {
  const names = ['the clock of a process jumps', ...(database === undefined ? [] : ['the clock of PostgreSQL jumps'])];
  if (clock === undefined) return names.map((name) => ({ name, reason: 'faketime cannot be installed' }));
  const jump = async (random: Random): Promise<void> => {
    for (const seconds of [hour, -hour]) {
      await clock.set(random.percent(50) ? seconds : random.below(20) * Math.sign(seconds));
      await forAWhile(random);
    }
    await clock.set(0);
  };
  const { environment } = clock;
  const ofProcess: Fault = {
    name: 'the clock of a process jumps',
    jumpsClock: database === undefined, // the embedded database has the clock of its process
    happen: async (random) => {
      const server = random.pick(servers);
      await server.kill();
      await server.start({ environment });
      await jump(random);
    },
  };
  if (database === undefined) return [ofProcess];
  const { primary } = database;
  const ofDatabase: Fault = {
    name: 'the clock of PostgreSQL jumps',
    jumpsClock: true,
    happen: async (random) => {
      await primary.shutDownAtOnce();
      await primary.start(environment);
      await jump(random);
      // Without the library that sets clocks.
      await primary.shutDownAtOnce();
      await primary.start();
    },
  };
  return [ofProcess, ofDatabase];
}
