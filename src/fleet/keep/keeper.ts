import { sql } from 'kysely';
import { inBackground } from '../../../db/engine/background.ts';
import type { Database } from '../../../db/engine/connect.ts';
import { isOtherSchema, isTimedOut, isUnavailable, repeatLostRaces } from '../../../db/engine/failures.ts';
import { type FleetSnapshot, isRead, newestXid } from '../../../db/fleet/change_log.ts';
import { pruneChanges } from '../../../db/fleet/prune_changes.ts';
import { type Changes, checkForChanges, forgetForeignChanges, readChanges } from '../../../db/fleet/read_changes.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../../log/log.ts';
import { type Outages, type Reported, reporting } from '../../log/outages.ts';
import { createRecentChanges, type RecentChanges } from '../follow/position.ts';
import type { AppliedChanges, Fleet } from '../model/fleet.ts';
import { createHeldSnapshots, type HeldSnapshot, type HeldSnapshots } from '../model/held_snapshots.ts';
import { type OwnWrite, rowsAfter, rowsOf, showEffects } from '../model/own_writes.ts';
import { type CaughtUp, catchUp, loadFleet } from './load.ts';

/** Keeps one fleet in step with the database. */
export type FleetKeeper = {
  /**
   * Refreshes the fleet: then it has everything that was committed before this call. Calls that wait share one round trip.
   *
   * Until the code that awaited the fleet awaits anything else, the fleet shows one snapshot of the database, and no own write that the
   * snapshot lacks: such a write may follow a write of another process that the snapshot lacks as well. So read it at once, or hold it.
   */
  fresh(): Promise<Fleet>;
  /**
   * The fleet as of the last refresh, with own writes in addition, but for those that a refresh has just hidden (see `fresh`). Use it only
   * for decisions that a guarded statement checks afterwards.
   */
  readonly known: Fleet;
  /**
   * Adds a write of this process to `known`, so that the next write needs no refresh. The next refresh removes the write
   * again, and reads the written rows.
   *
   * @returns false if the write was not added: too many writes are shown already because no refresh has succeeded, or the write does not
   *   match the known fleet. Then a refresh must come before the next judgement.
   */
  applyOwnWrite(write: OwnWrite): boolean;
  /**
   * Holds the present snapshot of `known` for an answer that is sent while it is computed (held_snapshots.ts).
   *
   * @param giveUp called if held snapshots would need too much memory
   */
  readonly hold: (giveUp: () => void) => HeldSnapshot;
  /** How many snapshots are held, and how many providers are kept for them. */
  readonly heldSnapshots: HeldSnapshots['counts'];
  /**
   * The snapshot of the last refresh: `known` shows the database as of this snapshot, and own writes in addition. The object is replaced
   * when own writes of providers are shown, and when own writes are shown again after a refresh.
   */
  readonly snapshot: FleetSnapshot;
  /** The transactions of the writes that `known` shows in addition. */
  readonly ownWrites: readonly string[];
  /**
   * Whether a connection broke since the last refresh, so that the server may have crashed, or another server may answer. Then `known` may
   * show writes that no server has, with generations that now belong to other content.
   */
  isInDoubt(): boolean;
  /** The recent changes of parts of providers, and the position in the log that `known` has reached, for clients that follow changes. */
  readonly recent: RecentChanges;
  /**
   * From now on a listener is called each time after `known` has changed, in the same iteration of the event loop.
   *
   * @param listener called with the ids of the providers that may have more room than before; undefined stops watching
   */
  watchRoom(listener: ((freed: readonly number[] | 'all') => void) | undefined): void;
  /** How often the fleet was refreshed, and how often it was loaded as a whole. */
  readonly counts: { readonly refreshes: number; readonly loads: number };
  /** How old the content of the fleet is, in seconds since the start of the last refresh that succeeded. */
  ageSeconds(): number;
};

/**
 * After this number of own writes a refresh begins without a request for it, so that the process keeps up with the change log.
 */
const ownWritesLimit = 64;
/**
 * An own write that is shown after this time begins a refresh as well. While other transactions write thousands of rows to the change
 * log, such as when terms expire, there would be more rows than one statement reads before `ownWritesLimit` is reached.
 */
const refreshAfterMs = 500;
/**
 * The largest number of own writes that are shown while refreshes fail or take long. Each own write takes memory, and must be
 * excluded when claims read the changes of other transactions.
 */
const mostOwnWrites = 1024;
/**
 * After this number of refreshes in a row without a change, a refresh first checks whether there is one. The check is cheaper than
 * reading changes, but costs a second round trip if there is a change.
 */
const quietRefreshes = 2;

/**
 * Loads the fleet and returns its keeper.
 *
 * @param outages called with the outcome of each refresh, whether the database could be reached
 */
export async function openFleet(database: Database, outages?: Outages): Promise<FleetKeeper> {
  const counts = { refreshes: 0, loads: 0 };
  const snapshots = createHeldSnapshots();
  const { breaks } = database;
  const load = async () => {
    const broken = breaks.count;
    await forgetForeignChanges(database);
    const loaded = await repeatLostRaces(() => loadFleet(database, { snapshots, isStart: counts.loads === 0 })); // it may deadlock with a TRUNCATE
    breaks.settle(broken);
    counts.loads++;
    return loaded;
  };
  let trueAtMs = performance.now();
  let { living, snapshot, log } = await load();
  const recent = createRecentChanges({ pgSnapshot: snapshot.pgSnapshot, log });

  /** The writes that `known` shows in addition to its snapshot, in the order in which they are shown. */
  let ownWrites: ShownWrite[] = [];
  /** Own writes that the last refresh has not read. They are shown again once the reads that waited for the refresh are computed. */
  let unreadWrites: OwnWrite[] = [];
  const show = (write: OwnWrite, sign: 1 | -1): void => {
    living.detach(write.effects);
    showEffects(living.fleet, write, sign);
  };
  /**
   * Shows a write. Its providers are shown as the write left them.
   *
   * @param mayBeUnread whether a refresh is under way that may not read the write, so that the write is hidden again at its end
   * @returns whether the write is shown
   */
  const showOwn = (write: OwnWrite, mayBeUnread: boolean): boolean => {
    const { xid, providers = [] } = write;
    let before: AppliedChanges | undefined;
    if (providers.length > 0) {
      const rows = rowsAfter(living.fleet, providers);
      if (rows === undefined) return false;
      const whole = rows.providers.map(({ id }) => id);
      if (mayBeUnread) before = { whole, ...rowsOf(living.fleet, whole) };
      living.apply({ whole, ...rows });
      snapshot = { ...snapshot, shown: [...(snapshot.shown ?? []), xid] };
    }
    show(write, 1);
    ownWrites.push({ write, before });
    return true;
  };
  /** Hides all own writes, the last one first; but not the providers that the refresh has certainly read, and replaces. */
  const hideOwnWrites = (): void => {
    for (const { write, before } of ownWrites.reverse()) {
      show(write, -1);
      if (before !== undefined) living.apply(before);
    }
    ownWrites = [];
  };
  /**
   * Whether the fleet must be loaded again. Either the database was unavailable, and the server that answers now may be a standby that
   * lacks changes which the fleet has read; or its tables were missing, and may be other tables now; or an error left changes half applied.
   */
  let mustLoad = false;
  let roomListener: ((freed: readonly number[] | 'all') => void) | undefined;
  /**
   * Whether reading the changes by one statement exceeded its time limit. Then the changes are read by many statements
   * without a limit.
   */
  let tookTooLong = false;
  /** What failed outside a refresh since the last one. */
  let failure: { readonly error: unknown } | undefined;
  /** How many refreshes in a row found no change. */
  let quiet = 0;
  /** Does something outside a refresh. If it fails, everything is loaded, and the next refresh to begin reports the error. */
  const guarded = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      mustLoad = true;
      failure = { error };
    }
  };
  /**
   * Shows own writes again that the last refresh has not read. A write that does not match the fleet any more is read by the next refresh.
   *
   * @returns the ids of the providers that may have more room than before
   */
  const showUnread = (): readonly number[] => {
    if (unreadWrites.length === 0) return [];
    const unread = unreadWrites;
    unreadWrites = [];
    snapshot = { ...snapshot };
    guarded(() => {
      for (const write of unread) showOwn(write, false);
    });
    return unread.flatMap(freedByOwn);
  };
  const refresh = (): Promise<Fleet> =>
    bringUpToDate().catch((error: unknown) => {
      // Any later refresh begins after these writes, and reads them.
      ownWrites = ownWrites.map(({ write }) => ({ write, before: undefined }));
      mustLoad ||= isUnavailable(error) || isOtherSchema(error);
      tookTooLong ||= isTimedOut(error);
      outages?.notice(error);
      throw error;
    });
  /** Reads the change to apply; undefined if everything must be loaded. */
  const readWhatChanged = async (): Promise<ReadChange | undefined> => {
    if (quiet >= quietRefreshes && !tookTooLong && !mustLoad) {
      const { pgSnapshot, hasChanged } = await repeatLostRaces(() => checkForChanges(database, snapshot));
      if (!hasChanged)
        return { pgSnapshot, lastXid: null, lastInventoryXid: null, changedParts: null, apply: () => {} };
    }
    const withParts = recent.isRecording();
    const changes = tookTooLong
      ? undefined
      : await repeatLostRaces(() => readChanges(database, snapshot, { withParts }));
    if (changes?.reload || mustLoad) return undefined;
    if (changes === undefined || changes.isMuch) return repeatLostRaces(() => catchUp(database, living, snapshot));
    const { pgSnapshot, lastXid, lastInventoryXid, changedParts } = changes;
    return {
      pgSnapshot,
      lastXid,
      lastInventoryXid,
      ...(withParts ? { changedParts } : {}),
      ...(roomListener === undefined ? {} : { freed: freedBy(changes) }),
      apply: () => living.apply(changes),
    };
  };
  /** Whether another server may answer than the one that the fleet was read from, although the run is the same. */
  const mayBeAnother = async (): Promise<boolean> => {
    // If a connection from before the break is still open, this statement probably uses it, which proves that the server is the same.
    if (breaks.isInDoubt()) await sql`select`.execute(database.kysely);
    return breaks.isInDoubt();
  };
  const allOwnWrites = (): OwnWrite[] => [...ownWrites.map(({ write }) => write), ...unreadWrites];
  const bringUpToDate = async (): Promise<Fleet> => {
    const startedMs = performance.now();
    if (failure !== undefined) {
      const { error } = failure;
      failure = undefined;
      throw error;
    }
    const changes = await readWhatChanged();
    mustLoad ||= await mayBeAnother();
    counts.refreshes++;
    quiet = changes?.lastXid === null ? quiet + 1 : 0;
    let freed: readonly number[] | 'all' | undefined = 'all';
    if (changes === undefined || mustLoad) {
      // Writes that were committed before the load are either loaded, or were lost in a failover.
      const committed = new Set(allOwnWrites());
      const loaded = await load();
      snapshots.leaveFleet(living.fleet.byId.size);
      unreadWrites = allOwnWrites().filter((write) => !committed.has(write));
      ownWrites = [];
      ({ living, snapshot, log } = loaded);
      recent.restart({ pgSnapshot: snapshot.pgSnapshot, log });
    } else {
      mustLoad = true;
      unreadWrites = allOwnWrites();
      hideOwnWrites();
      changes.apply();
      const { pgSnapshot, lastXid, lastInventoryXid } = changes;
      const { serverRun } = snapshot;
      snapshot = { serverRun, pgSnapshot, lastXid: newestXid(snapshot.lastXid, lastXid, lastInventoryXid) };
      recent.note(changes);
      freed = lastXid === null ? undefined : (changes.freed ?? 'all');
    }
    unreadWrites = unreadWrites.filter(({ xid }) => !isRead(snapshot, xid));
    mustLoad = false;
    tookTooLong = false;
    trueAtMs = startedMs;
    outages?.answered(startedMs);
    if (unreadWrites.length > 0) process.nextTick(afterReads, freed);
    else if (freed !== undefined) roomListener?.(freed);
    return living.fleet;
  };
  /** Called after a refresh that has not read all own writes, once the reads that waited for it are computed. */
  const afterReads = (freed: readonly number[] | 'all' | undefined): void => {
    const byOwn = showUnread();
    if (freed === undefined && byOwn.length === 0) return;
    guarded(() => roomListener?.(freed === 'all' ? freed : [...(freed ?? []), ...byOwn]));
  };

  const refreshes = shareRefreshes(database, refresh);

  return {
    fresh: refreshes.next,
    applyOwnWrite: (write) => {
      // The next refresh skips the check for changes. If the write lost its guards, the change that made it lose them may be in the log
      // of inventory changes alone, which only `readChanges` reads.
      quiet = 0;
      const isEmpty = write.effects.length === 0 && write.providers === undefined;
      if (isEmpty || isRead(snapshot, write.xid)) return true;
      const freedBefore = showUnread(); // writes are shown in the order in which they were answered
      const isShown = ownWrites.length < mostOwnWrites && showOwn(write, refreshes.isRunning());
      const freed = [...freedBefore, ...(isShown ? freedByOwn(write) : [])];
      if (isShown || freed.length > 0) roomListener?.(freed);
      // No request waits for this refresh. If the database is unavailable, the next request for a refresh gets the error.
      const isDue = ownWrites.length >= ownWritesLimit || performance.now() - trueAtMs >= refreshAfterMs;
      if (isDue && !refreshes.isRunning()) refreshes.next().catch(() => {});
      return isShown;
    },
    hold: (giveUp) => living.hold(giveUp),
    get heldSnapshots() {
      return snapshots.counts;
    },
    recent,
    get known() {
      return living.fleet;
    },
    get snapshot() {
      return snapshot;
    },
    get ownWrites() {
      return ownWrites.map(({ write }) => write.xid);
    },
    isInDoubt: breaks.isInDoubt,
    watchRoom: (listener) => {
      roomListener = listener;
    },
    counts,
    ageSeconds: () => (performance.now() - trueAtMs) / 1000,
  };
}

/**
 * An own write that the fleet shows.
 *
 * `before` has its providers as they were, where a refresh was under way that may not read the write.
 */
type ShownWrite = { readonly write: OwnWrite; readonly before: AppliedChanges | undefined };

/** A change of the fleet that was read, and the ids of the providers that got more room; undefined if they are unknown. */
type ReadChange = CaughtUp & Partial<Pick<Changes, 'changedParts'>> & { readonly freed?: readonly number[] };

/** The providers that may have more room: their usage became less, or anything but their usage changed. */
const freedBy = ({ moved, whole }: Changes): readonly number[] => [
  ...(whole ?? []),
  ...(moved ?? []).flatMap(({ provider, deltas }) => (deltas.some((delta) => delta < 0) ? [provider] : [])),
];

const freedByOwn = ({ effects, providers = [] }: OwnWrite): readonly number[] => [
  ...effects.flatMap(({ providerId, used }) => (used.some(({ delta }) => delta < 0) ? [providerId] : [])),
  ...providers.map(({ id }) => id),
];

/** Runs one refresh at a time. All calls before the start of a refresh share it. */
type SharedRefreshes<Result> = {
  /** The result of a refresh that begins after this call. */
  next(): Promise<Result>;
  /** Whether a refresh is under way, or about to begin. */
  isRunning(): boolean;
};

/** @param refresh runs on behalf of the requests that share it */
function shareRefreshes<Result>(
  { pollSockets }: Pick<Database, 'pollSockets'>,
  refresh: () => Promise<Result>,
): SharedRefreshes<Result> {
  let running = false;
  /** The refresh that is about to begin; calls before its start share it. */
  let gathering: Promise<Result> | undefined;
  /** The refresh after the one that is under way. */
  let following: PromiseWithResolvers<Result> | undefined;
  let askedFor: RequestIds[] = [];

  const start = (): Promise<Result> => {
    running = true;
    const refreshed = gather();
    // The next refresh begins before the calls get the result of this one. Otherwise a caller that refreshes again at once
    // could start a second refresh in parallel, and both would apply the same changes.
    const end = (): void => {
      running = false;
      const waited = following;
      following = undefined;
      waited?.resolve(start());
    };
    refreshed.then(end, end);
    gathering = refreshed;
    return refreshed;
  };
  const gather = async (): Promise<Result> => {
    await pollSockets();
    const requests = askedFor;
    askedFor = [];
    gathering = undefined;
    return onBehalfOf(requests, refresh);
  };

  return {
    next: () => {
      askedFor.push(...requestsServed());
      if (gathering !== undefined) return gathering;
      // The refresh under way may have begun before this call, so the call shares the next one.
      if (!running) return start();
      following ??= Promise.withResolvers();
      return following.promise;
    },
    isRunning: () => running,
  };
}

/**
 * Deletes old rows of the change log from time to time. Every process does so; pruning more than once is harmless.
 *
 * @param keepMs changes are kept for one to two times this time; a process that could not refresh for longer loads everything
 *   afterwards
 * @returns a function that stops it, and resolves when its last statement has ended
 */
export function pruneFromTimeToTime(database: Database, reported: Reported, keepMs: number): () => Promise<void> {
  let oldest: string | undefined;
  return inBackground({
    everyMs: keepMs,
    failed: reporting(reported, 'The change log could not be pruned; it is tried again later'),
    round: async (stopping) => {
      oldest = await pruneChanges(database, oldest, () => stopping.aborted);
    },
  });
}
