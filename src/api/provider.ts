import { notFoundWithoutVary } from '../errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';

export const noSuchProvider = (uuid: string): string => `No resource provider with uuid ${uuid} found`;

/** @throws ApiError 404 where there is no provider of this UUID, which must be spelt as it is stored. */
export function findProvider(fleet: Fleet, uuid: string): Provider {
  const provider = fleet.byUuid.get(uuid);
  if (provider === undefined) throw notFoundWithoutVary(noSuchProvider(uuid));
  return provider;
}

/** What a representation says it was last modified at: the newest of several times, or now where there is none. */
export function newest(timesMs: Iterable<number | undefined>): Date {
  let latest: number | undefined;
  for (const time of timesMs) if (time !== undefined && (latest === undefined || time > latest)) latest = time;
  return latest === undefined ? new Date() : new Date(latest);
}

export function modifiedAtMs(row: {
  readonly createdAtSeconds: number | undefined;
  readonly updatedAtSeconds: number | undefined;
}): number | undefined {
  const seconds = row.updatedAtSeconds ?? row.createdAtSeconds;
  return seconds === undefined ? undefined : seconds * 1000;
}

export const noSuchClass = (name: string): string => `No such resource class ${name}.`;
