import { statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { LogHealth } from '../log/log.ts';
import { atIntervals } from './gathering.ts';
import { registerGauges } from './gauges.ts';

/** How long a scrape waits for the file system of the log file, in milliseconds: one in the network may not answer. */
const diskTimeoutMs = 1_000;

/** Registers the metrics of the log: whether its lines arrive where they are written to. */
export function registerLog(register: Registry, { file, isWritable, waitingBytes, linesLost }: LogHealth): void {
  const registers = [register];
  registerGauges(register, [
    ['placement_log_writable', 'Whether the last write to the log succeeded, 1 or 0.', () => (isWritable() ? 1 : 0)],
    [
      'placement_log_waiting_bytes',
      'Text of the log that is not written yet. Lines are lost where it would be more than 16 MiB.',
      waitingBytes,
    ],
  ]);
  new Counter({
    name: 'placement_log_lines_lost_total',
    help: 'Lines of the log that were lost, since too much text waited to be written.',
    registers,
    collect() {
      this.reset();
      this.inc(linesLost());
    },
  });
  const freeBytes = inTime(async () => {
    const name = file();
    if (name === undefined) return undefined;
    const { bavail, bsize } = await statfs(name);
    return bavail * bsize;
  }, diskTimeoutMs);
  new Gauge({
    name: 'placement_log_disk_free_bytes',
    help: 'What is free for the service on the disk of the log file; missing where there is no log file, or the disk cannot be read.',
    registers,
    async collect() {
      const free = await freeBytes();
      if (free === undefined) this.remove();
      else this.set(free);
    },
  });
}

/** What a read returns, or undefined where it fails or takes too long. No second read begins while one is under way. */
function inTime<Value>(read: () => Promise<Value>, timeoutMs: number): () => Promise<Value | undefined> {
  const answer = atIntervals(0, () => read().catch(() => undefined));
  return () => Promise.race([answer(), sleep(timeoutMs, undefined, { ref: false })]);
}
