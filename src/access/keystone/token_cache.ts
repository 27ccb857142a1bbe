/** Remembers values for a time. */
export type TokenCache<T> = {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
};

/** @param options.seconds how long a value is remembered; 0 or less for not at all. */
export function openTokenCache<T>({
  seconds,
  limit,
}: {
  readonly seconds: number;
  /** How many values there are at most; the oldest one is removed first. */
  readonly limit: number;
}): TokenCache<T> {
  const entries = new Map<string, { readonly value: T; readonly untilMs: number }>();
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      if (performance.now() < entry.untilMs) return entry.value;
      entries.delete(key);
      return undefined;
    },
    set: (key, value) => {
      if (seconds <= 0) return;
      // It is put at the end, so that the first one is always the oldest.
      entries.delete(key);
      entries.set(key, { value, untilMs: performance.now() + seconds * 1000 });
      const [oldest] = entries.keys();
      if (entries.size > limit && oldest !== undefined) entries.delete(oldest);
    },
  };
}
