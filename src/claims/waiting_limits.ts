import type { Waiter } from './waiter.ts';
import { insertInOrder, isBefore } from './waiting_groups.ts';

/** Claims of one kind that wait, in the order of arrival. */
type OfKind = readonly [Waiter, ...Waiter[]];

/** The claims that wait for a limit. */
export type LimitedClaims = {
  readonly size: number;
  add(waiter: Waiter): void;
  /** Removes a claim, if it is there. */
  remove(waiter: Waiter): void;
  hasKind(kind: string): boolean;
  /** Whether a claim of its kind waits that came before it. */
  hasKindBefore(waiter: Waiter): boolean;
  /** The claims as they are now, by their kinds: where the first claim of a kind exceeds a limit, all claims of the kind do. */
  kinds(): readonly OfKind[];
  /** Notes that at this time all claims of a project exceeded a limit. */
  noteLooked(projectId: string, atMs: number): void;
  /** Whether an earlier claim of the project was not checked since this claim came: the earlier one may not exceed its limit any more. */
  hasUnlookedBefore(waiter: Waiter): boolean;
};

/** Starts without claims. */
export function openLimitedClaims(): LimitedClaims {
  const byKind = new Map<string, [Waiter, ...Waiter[]]>();
  let size = 0;

  const ofProject = (projectId: string) => claimsOf(byKind.values(), projectId);
  return {
    get size() {
      return size;
    },
    add: (waiter) => {
      const others = byKind.get(waiter.kind);
      if (others === undefined) byKind.set(waiter.kind, [waiter]);
      else insertInOrder(others, waiter);
      size += 1;
    },
    remove: (waiter) => {
      const present = byKind.get(waiter.kind);
      if (present?.includes(waiter) !== true) return;
      const [first, ...others] = present.filter((other) => other !== waiter);
      if (first === undefined) byKind.delete(waiter.kind);
      else byKind.set(waiter.kind, [first, ...others]);
      size -= 1;
    },
    hasKind: (kind) => byKind.has(kind),
    hasKindBefore: (waiter) => {
      const first = byKind.get(waiter.kind)?.[0];
      return first !== undefined && isBefore(first, waiter);
    },
    kinds: () => Array.from(byKind.values(), ([first, ...others]) => [first, ...others]),
    noteLooked: (projectId, atMs) => {
      for (const waiter of ofProject(projectId)) waiter.lookedAtMs = atMs;
    },
    hasUnlookedBefore: ({ wait, sinceMs, cameAtMs }) =>
      ofProject(wait.owner.projectId).some((other) => other.sinceMs < sinceMs && other.lookedAtMs < cameAtMs),
  };
}

/** The claims of a project; all of a kind are of one. */
function* claimsOf(kinds: Iterable<OfKind>, projectId: string): Generator<Waiter> {
  for (const claims of kinds) if (claims[0].wait.owner.projectId === projectId) yield* claims;
}
