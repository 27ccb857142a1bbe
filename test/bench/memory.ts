import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredServer } from './measured_server.ts';
import { residentMb } from './processes.ts';

/** W7: what a server takes with its providers in memory. */
export type Footprint = {
  readonly server: string;
  readonly providers: number;
  /** Of all its processes, in MB (10^6 bytes). */
  readonly residentMb: number;
  /** From its start until it answered, its processes one after the other; undefined where it was used since. */
  readonly startMs?: number;
};

/** Of a server that is started for it, before anything is asked of it; undefined where it is not ours to start. */
export async function freshFootprint(server: MeasuredServer, providers: number): Promise<Footprint | undefined> {
  const started = await server.restart?.();
  if (started === undefined) return undefined;
  await sleep(1000); // V8 gives memory back a little later
  return { ...usedFootprint(server, providers), ...started };
}

/** Of a server after its workloads. */
export function usedFootprint(server: MeasuredServer, providers: number): Footprint {
  return { server: server.name, providers, residentMb: residentMb(server.pids()) };
}

export function footprintLine({ server, providers, residentMb: mb, startMs }: Footprint): string {
  const when =
    startMs === undefined ? 'after its workloads' : `when it has started, in ${(startMs / 1000).toFixed(1)} s`;
  return `W7 ${server}, ${providers} providers: ${mb.toFixed(0)} MB ${when}`;
}
