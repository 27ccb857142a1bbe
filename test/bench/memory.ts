import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredServer } from './measured_server.ts';
import { residentMb } from './processes.ts';

/** W7: what a server takes with its providers in memory. */
export type Footprint = {
  readonly server: string;
  readonly providers: number;
  /** The memory of all its processes, in MB (10^6 bytes). */
  readonly residentMb: number;
  /**
   * The time from the start until the first answer, its processes one after the other. Undefined if it has had requests
   * since.
   */
  readonly startMs?: number;
};

/**
 * Measures a server right after a start, before any request. Undefined if the server was not started by this program.
 */
export async function freshFootprint(server: MeasuredServer, providers: number): Promise<Footprint | undefined> {
  const started = await server.restart?.();
  if (started === undefined) return undefined;
  await sleep(1000); // V8 releases memory a little later
  return { ...usedFootprint(server, providers), ...started };
}

/** Measures a server after its workloads. */
export function usedFootprint(server: MeasuredServer, providers: number): Footprint {
  return { server: server.name, providers, residentMb: residentMb(server.pids()) };
}

export function footprintLine({ server, providers, residentMb: mb, startMs }: Footprint): string {
  const when =
    startMs === undefined ? 'after its workloads' : `when it has started, in ${(startMs / 1000).toFixed(1)} s`;
  return `W7 ${server}, ${providers} providers: ${mb.toFixed(0)} MB ${when}`;
}
