/** The time for Last-Modified: the newest of several times, or now where there is none. */
export function newest(timesMs: Iterable<number | undefined>): Date {
  let latest: number | undefined;
  for (const time of timesMs) if (time !== undefined && (latest === undefined || time > latest)) latest = time;
  return latest === undefined ? new Date() : new Date(latest);
}

/** When a provider, trait or class was last written, in milliseconds since 1970. */
export function modifiedAtMs(row: {
  readonly createdAtSeconds: number | undefined;
  readonly updatedAtSeconds: number | undefined;
}): number | undefined {
  const seconds = row.updatedAtSeconds ?? row.createdAtSeconds;
  return seconds === undefined ? undefined : seconds * 1000;
}
