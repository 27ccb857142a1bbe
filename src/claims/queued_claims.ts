/** The claims in the queue of claims, also those that never wait, by what the queue keeps in order. */
export type QueuedClaims = {
  /**
   * Adds a claim in the order in which the queue gets it.
   *
   * @param claim stands for the claim
   * @param keys of two claims with a common key, the queue keeps the later one behind the earlier one
   * @returns to be called when the claim is settled
   */
  enter(claim: object, keys: readonly string[]): () => void;
  /** Whether the queue keeps a claim behind another one; not one that the queue does not have. */
  isBehind(claim: object): boolean;
};

/** Starts without claims. */
export function openQueuedClaims(): QueuedClaims {
  const keysOf = new Map<object, readonly string[]>();
  const byKey = new Map<string, Set<object>>();
  return {
    enter: (claim, keys) => {
      keysOf.set(claim, keys);
      for (const key of keys) {
        const present = byKey.get(key);
        if (present === undefined) byKey.set(key, new Set([claim]));
        else present.add(claim);
      }
      return () => {
        keysOf.delete(claim);
        for (const key of keys) {
          const present = byKey.get(key);
          present?.delete(claim);
          if (present?.size === 0) byKey.delete(key);
        }
      };
    },
    isBehind: (claim) => {
      for (const key of keysOf.get(claim) ?? []) {
        const [first] = byKey.get(key) ?? [];
        if (first !== claim) return true;
      }
      return false;
    },
  };
}
