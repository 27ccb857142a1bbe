import type { ProjectLimits } from '../../placement/limits.ts';
import type { Claim } from '../claim.ts';
import { insertInOrder, isBefore } from './groups.ts';
import type { Waiter } from './waiter.ts';

/** How many claims are written at the same time because a limit allows them. */
const submittedAtOnce = 256;

/** Claims of one kind that wait, in the order of arrival. */
type OfKind = readonly [Waiter, ...Waiter[]];

/** The claims that wait for a limit. */
export type LimitedClaims = {
  readonly size: number;
  add(waiter: Waiter): void;
  /** Removes a claim, if it is there. */
  remove(waiter: Waiter): void;
  hasKind(kind: string): boolean;
  /** Whether an earlier claim of its kind waits. */
  hasKindBefore(waiter: Waiter): boolean;
  /**
   * Finds the claims that do not exceed their limits any more, in the order of arrival: of each kind as many as the limits allow, since
   * where the first claim of a kind exceeds a limit, all claims of the kind do.
   *
   * @param readRoom reads how often each of the claims can be written under its limits; undefined where that is not known
   */
  fitting(readRoom: (claims: readonly Claim[]) => Promise<readonly number[] | undefined>): Promise<readonly Waiter[]>;
  /**
   * Whether an earlier claim of the project was not checked since this claim came, or by the present limits: the earlier one may not exceed
   * its limit any more.
   */
  hasUncheckedBefore(waiter: Waiter): boolean;
};

/**
 * Starts without claims.
 *
 * @param limitsNow the limits by which claims are judged now
 */
export function openLimitedClaims(limitsNow: () => ProjectLimits): LimitedClaims {
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
    fitting: async (readRoom) => {
      const nowMs = performance.now();
      const limits = limitsNow();
      const kinds = Array.from(byKind.values(), ([first, ...others]): OfKind => [first, ...others]).filter(
        ([{ notBeforeMs }]) => notBeforeMs <= nowMs,
      );
      const predictable = kinds.filter(([first]) => first.isPredictable);
      const times = predictable.length === 0 ? [] : await readRoom(predictable.map(([{ claim }]) => claim));
      for (const [index, [{ wait }]] of predictable.entries()) {
        if (times?.[index] !== 0) continue;
        for (const waiter of ofProject(wait.owner.projectId)) {
          waiter.exceededAtMs = nowMs;
          waiter.exceededBy = limits;
        }
      }
      const fitting = kinds.flatMap((kind) => {
        const index = predictable.indexOf(kind);
        const [first] = kind;
        const count = times?.[index] ?? 1;
        // The limit that refused a claim of several queries may concern one of the queries: then only judging the claim decides.
        if (count < Number.POSITIVE_INFINITY || !hasSeveralQueries(first.claim)) return kind.slice(0, count);
        first.mustBeJudged = true;
        return kind.slice(0, 1);
      });
      return fitting.sort((a, b) => (isBefore(a, b) ? -1 : 1)).slice(0, submittedAtOnce);
    },
    hasUncheckedBefore: ({ wait, sinceMs, cameAtMs }) =>
      ofProject(wait.owner.projectId).some(
        (other) => other.sinceMs < sinceMs && (other.exceededAtMs < cameAtMs || other.exceededBy !== limitsNow()),
      ),
  };
}

/** The claims of a project. All claims of a kind are of the same project. */
function* claimsOf(kinds: Iterable<OfKind>, projectId: string): Generator<Waiter> {
  for (const claims of kinds) if (claims[0].wait.owner.projectId === projectId) yield* claims;
}

const hasSeveralQueries = ({ consumers }: Claim): boolean =>
  consumers.some(({ queries }) => queries !== undefined && queries.length > 1);
