import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { type ChangedParts, readChangedParts } from '../../../db/fleet/changed_parts.ts';
import { openFairSeats } from '../../queue/fair_seats.ts';
import type { FleetKeeper } from '../keep/keeper.ts';
import { bitsToRead, type ChangeSet, changeSetOf, type Interest } from './change_set.ts';
import { type Position, pointOf } from './position.ts';

/** Changes for a client that follows, and the position in the log up to which it has been told with them. */
export type Told = { readonly changes: ChangeSet; readonly position: Position };

/** A client that follows changes. */
export type Follower = {
  /** What it wants to be told of. */
  readonly interest: Interest;
  /**
   * Called when something was logged, even if nothing of it is of interest. `expired`: the client must read everything
   * anew, since the log does not go back so far, PostgreSQL failed over, or too much has changed. `ended`: the process ends, or the
   * seat is given to another user. After `expired` or `ended` the function is not called again.
   */
  readonly tell: (told: Told | 'expired' | 'ended') => void;
};

/** A seat for one request that follows changes. */
export type FollowerSeat = {
  /** Follows from a position that the fleet has shown; once. @returns a function that ends it, and gives back the seat */
  follow(follower: Follower, from: Position): () => void;
};

/** Tells clients what changed. All of them share the refreshes of the fleet. */
export type Followers = {
  /** How many clients follow. */
  readonly size: number;
  /** What was logged since a position, until the position that the fleet shows. */
  since(position: Position, interest: Interest): Promise<Told | 'expired'>;
  /**
   * Takes a seat. If none is free, the user with most seats loses its youngest one.
   *
   * @returns undefined where no seat is free, and no user has more seats than this one
   */
  takeSeat(user: string): FollowerSeat | undefined;
  /** How many seats a user has. */
  seatsOf(user: string): number;
  /** Ends all followers, and from now on each new one at once. */
  end(): void;
};

/** The largest number of entries that a client is told at once. If more has changed, it must read everything anew. */
export const mostEntries = 10_000;

/** How long to wait after a refresh that failed, in milliseconds. */
const pauseMs = 1_000;

/** How often the log is read for a position, if PostgreSQL restarts meanwhile. */
const attempts = 3;

type State = Follower & { position: Position };

/** A seat. Another user may get it before or after a client follows from it. */
type ReservedFollow = { state: State | undefined; isLost: boolean };

/**
 * Opens `Followers` without clients.
 *
 * @param options.lookEveryMs how often the fleet is refreshed while clients follow, if no request does so; clients are told
 *   no more often than that
 * @param options.maxFollowers how many seats there are
 */
export function openFollowers(
  database: Pick<Database, 'kysely'>,
  fleet: Pick<FleetKeeper, 'fresh' | 'known' | 'snapshot' | 'recent' | 'ageSeconds'>,
  { lookEveryMs, maxFollowers }: { readonly lookEveryMs: number; readonly maxFollowers: number },
): Followers {
  const { recent } = fleet;
  const following = new Set<State>();
  const seats = openFairSeats<ReservedFollow>({
    most: maxFollowers,
    takeAway: (seat) => {
      seat.isLost = true;
      if (seat.state === undefined || !following.delete(seat.state)) return;
      seat.state.tell('ended');
    },
  });
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  let isRefreshing = false;

  const readLog = async (position: Position, bits: number): Promise<Told | 'expired'> => {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      if (!recent.hasReached(position)) return 'expired';
      const until = recent.position;
      const snapshot = { ...fleet.snapshot, ...pointOf(until) };
      const { isOtherRun, isGone, told } = await repeatLostRaces(() =>
        readChangedParts(database, pointOf(position), snapshot, { bits, most: 2 * mostEntries }),
      );
      if (isOtherRun) await fleet.fresh();
      else return isGone ? 'expired' : toldOf(told ?? [], until);
    }
    return 'expired';
  };
  const toldOf = (rows: readonly ChangedParts[], position: Position): Told => ({
    changes: changeSetOf(fleet.known, rows),
    position,
  });

  const deliver = (states: readonly State[], told: Told | 'expired'): void => {
    for (const state of states) {
      if (!following.has(state)) continue;
      if (told === 'expired' || told.changes.size(state.interest) > mostEntries) {
        following.delete(state);
        state.tell('expired');
      } else {
        state.position = told.position;
        state.tell(told);
      }
    }
  };
  /** Positions whose changes are no longer in memory, and are being read from the log: each once, for all clients at the position. */
  const reading = new Set<Position>();
  const readFor = async (position: Position, states: readonly State[]): Promise<void> => {
    reading.add(position);
    try {
      const bits = states.reduce((all, { interest }) => all | bitsToRead(interest), 0);
      deliver(states, await readLog(position, bits));
    } catch {
      // The database is away. Clients that still follow are told after a later refresh.
    } finally {
      reading.delete(position);
    }
  };
  const tellAll = (): void => {
    const { position: present } = recent;
    const behind = Map.groupBy(following, ({ position }) => position);
    behind.delete(present);
    for (const [position, states] of behind) {
      if (!recent.hasReached(position)) {
        deliver(states, 'expired');
        continue;
      }
      if (reading.has(position)) continue;
      const rows = recent.since(position);
      if (rows === undefined) void readFor(position, states);
      else deliver(states, toldOf(rows, present));
    }
  };

  const refresh = async (): Promise<void> => {
    isRefreshing = true;
    let nextMs = lookEveryMs;
    recent.record();
    try {
      if (fleet.ageSeconds() * 1000 >= lookEveryMs / 2) await fleet.fresh();
      tellAll();
    } catch {
      nextMs = Math.max(pauseMs, lookEveryMs);
    }
    isRefreshing = false;
    refreshLater(nextMs);
  };
  const refreshLater = (ms: number): void => {
    if (timer !== undefined || isRefreshing || following.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      void refresh();
    }, ms);
    timer.unref();
  };

  return {
    get size() {
      return following.size;
    },
    since: async (position, interest) => {
      recent.record();
      if (!recent.hasReached(position)) return 'expired';
      const rows = recent.since(position);
      const told = rows === undefined ? await readLog(position, bitsToRead(interest)) : toldOf(rows, recent.position);
      return told === 'expired' || told.changes.size(interest) > mostEntries ? 'expired' : told;
    },
    takeSeat: (user) => {
      const seat: ReservedFollow = { state: undefined, isLost: false };
      if (!seats.take(user, seat)) return undefined;
      const giveBack = (): void => void seats.leave(user, seat);
      return {
        follow: (follower, from) => {
          if (hasEnded || seat.isLost) {
            giveBack();
            follower.tell('ended');
            return () => {};
          }
          const state = { ...follower, position: from };
          seat.state = state;
          following.add(state);
          refreshLater(lookEveryMs);
          return () => {
            following.delete(state);
            giveBack();
          };
        },
      };
    },
    seatsOf: seats.sizeOf,
    end: () => {
      hasEnded = true;
      clearTimeout(timer);
      for (const { tell } of following) tell('ended');
      following.clear();
    },
  };
}
