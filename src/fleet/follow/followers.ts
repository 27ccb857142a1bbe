import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { type ChangedParts, readChangedParts } from '../../../db/fleet/changed_parts.ts';
import { openFairSeats } from '../../queue/fair_seats.ts';
import type { FleetKeeper } from '../keep/keeper.ts';
import { bitsToRead, type ChangeSet, changeSetOf, type Interest } from './change_set.ts';
import { type Position, pointOf } from './position.ts';

/** Changes for a client that follows, and the position in the log that the client has reached with them. */
export type Delivery = { readonly changes: ChangeSet; readonly position: Position };

/** A client that follows changes. */
export type Follower = {
  /** Which changes it wants. */
  readonly interest: Interest;
  /**
   * Called after each entry of the log, also if the client is not interested in the entry. `expired`: the client must read everything
   * again, since the log does not go back so far, PostgreSQL failed over, or too much has changed. `ended`: the process ends, or
   * another client got the seat. After `expired` or `ended` the function is not called again.
   */
  readonly send: (delivery: Delivery | 'expired' | 'ended') => void;
};

/** A seat for one request that follows changes. */
export type FollowerSeat = {
  /** Follows from a position that the fleet has shown; to be called once. @returns a function that stops following, and frees the seat */
  follow(follower: Follower, from: Position): () => void;
};

/** Sends changes to the clients that follow. All of them share the refreshes of the fleet. */
export type Followers = {
  /** How many clients follow. */
  readonly size: number;
  /** The entries of the log from a position to the position that the fleet shows. */
  since(position: Position, interest: Interest): Promise<Delivery | 'expired'>;
  /**
   * Takes a seat. If no seat is free, the client with most seats loses its youngest seat, if it has at least 2 more than this client.
   *
   * @returns undefined if no seat is free, and no client has at least 2 more than this client
   */
  takeSeat(client: string): FollowerSeat | undefined;
  /** How many seats a client has. */
  seatsOf(client: string): number;
  /** Ends all followers, and from now on each new one immediately. */
  end(): void;
};

/** The largest number of entries in one delivery. If more has changed, the client must read everything again. */
export const mostEntries = 10_000;

/** How long to wait after a refresh that failed, in milliseconds. */
export const pauseMs = 1_000;

/** How often the log is read for a position, if PostgreSQL restarts meanwhile. */
const attempts = 3;

type State = Follower & { position: Position };

/** A seat. It may be evicted before or after its client follows. */
type ReservedFollow = { state: State | undefined; isEvicted: boolean };

/**
 * Opens `Followers` without clients.
 *
 * @param options.lookEveryMs how often the fleet is refreshed while clients follow, if no request does so; deliveries are not
 *   more frequent
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
    onEvicted: (seat) => {
      seat.isEvicted = true;
      if (seat.state === undefined || !following.delete(seat.state)) return;
      seat.state.send('ended');
    },
  });
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  let isRefreshing = false;

  const readLog = async (position: Position, bits: number): Promise<Delivery | 'expired'> => {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      if (!recent.hasReached(position)) return 'expired';
      const until = recent.position;
      const snapshot = { ...fleet.snapshot, ...pointOf(until) };
      const { isOtherRun, isGone, changedParts } = await repeatLostRaces(() =>
        readChangedParts(database, pointOf(position), snapshot, { bits, most: 2 * mostEntries }),
      );
      if (isOtherRun) await fleet.fresh();
      else return isGone ? 'expired' : deliveryOf(changedParts ?? [], until);
    }
    return 'expired';
  };
  const deliveryOf = (rows: readonly ChangedParts[], position: Position): Delivery => ({
    changes: changeSetOf(fleet.known, rows),
    position,
  });

  const deliver = (states: readonly State[], delivery: Delivery | 'expired'): void => {
    for (const state of states) {
      if (!following.has(state)) continue;
      if (delivery === 'expired' || delivery.changes.size(state.interest) > mostEntries) {
        following.delete(state);
        state.send('expired');
      } else {
        state.position = delivery.position;
        state.send(delivery);
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
      // The database is unavailable. Clients that still follow get the changes after a later refresh.
    } finally {
      reading.delete(position);
    }
  };
  const sendToAll = (): void => {
    const { position: present } = recent;
    const outdated = Map.groupBy(following, ({ position }) => position);
    outdated.delete(present);
    for (const [position, states] of outdated) {
      if (!recent.hasReached(position)) {
        deliver(states, 'expired');
        continue;
      }
      if (reading.has(position)) continue;
      const rows = recent.since(position);
      if (rows === undefined) void readFor(position, states);
      else deliver(states, deliveryOf(rows, present));
    }
  };

  const refresh = async (): Promise<void> => {
    isRefreshing = true;
    let nextMs = lookEveryMs;
    recent.record();
    try {
      if (fleet.ageSeconds() * 1000 >= lookEveryMs / 2) await fleet.fresh();
      sendToAll();
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
      const delivery =
        rows === undefined ? await readLog(position, bitsToRead(interest)) : deliveryOf(rows, recent.position);
      return delivery === 'expired' || delivery.changes.size(interest) > mostEntries ? 'expired' : delivery;
    },
    takeSeat: (client) => {
      const seat: ReservedFollow = { state: undefined, isEvicted: false };
      if (!seats.take(client, seat)) return undefined;
      const giveBack = (): void => void seats.leave(client, seat);
      return {
        follow: (follower, from) => {
          if (hasEnded || seat.isEvicted) {
            giveBack();
            follower.send('ended');
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
      for (const { send } of following) send('ended');
      following.clear();
    },
  };
}
