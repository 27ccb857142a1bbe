import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredServer } from './measured_server.ts';
import { residentMb } from './processes.ts';

/** W7: what a server takes with its providers in memory. */
export type Footprint = {
  readonly server: string;
  readonly providers: number;
  /** Of all its processes, in MB (10^6 bytes), before anything was asked of it. */
  readonly residentMb: number;
  /** From its start until it answered, its processes one after the other; NaN where it is not ours to start. */
  readonly startMs: number;
};

export async function footprintOf(server: MeasuredServer, providers: number): Promise<Footprint> {
  const { startMs } = (await server.restart?.()) ?? { startMs: Number.NaN };
  await sleep(1000); // V8 gives memory back a little later
  return { server: server.name, providers, residentMb: residentMb(server.pids()), startMs };
}

export function footprintLine({ server, providers, residentMb: mb, startMs }: Footprint): string {
  const start = Number.isNaN(startMs) ? '' : `, started in ${(startMs / 1000).toFixed(1)} s`;
  return `W7 ${server}, ${providers} providers: ${mb.toFixed(0)} MB${start}`;
}
