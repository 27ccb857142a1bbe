import { inBackground } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import { isFaultOfOne, isLockRefused, repeatLostRaces } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import { disabledTrait, repairDisabledTrait } from '../../db/statements/services/agree_disabled_trait.ts';
import { retireServices } from '../../db/statements/services/delete_service.ts';
import { type Registration, registerServices } from '../../db/statements/services/register_services.ts';
import {
  computeBinary,
  hasUuid,
  type KnownService,
  type ServiceRow,
} from '../../db/statements/services/service_row.ts';
import { writeHeartbeats } from '../../db/statements/services/write_heartbeats.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { type Reported, reporting } from '../log/outages.ts';
import type { Entry } from '../queue/items.ts';
import { inBatches } from '../queue/queue.ts';
import { conflict } from '../request/errors.ts';

/** Notes that services are alive. Heartbeats that arrive within a short time are written together. */
export type Heartbeats = {
  /**
   * Registers a service, or notes its heartbeat. It resolves once that is written.
   *
   * @throws an error of the kind `taken` (db/engine/failures.ts) where another cell has the host.
   */
  beat(registration: Registration): Promise<KnownService>;
};

type Beat = Entry<Registration, KnownService>;

/**
 * The time from the start of a write to the start of the next one, in milliseconds, at least. A statement for one
 * service costs about as much as one for 30: with 1,000 heartbeats a second this makes 4 statements of 250.
 */
const windowMs = 250;
/** How many heartbeats are written together at most. */
const batchLimit = 1_000;

/** How often heartbeats refresh the fleet where no other request does, in milliseconds. */
const refreshAgainMs = 10_000;

/** @param downTimeSeconds how long a service counts as up after a heartbeat */
export function openHeartbeats(database: Database, fleet: FleetKeeper, downTimeSeconds: number): Heartbeats {
  let refreshedAtMs = Number.NEGATIVE_INFINITY;

  /** Writes the heartbeats of one cell and binary, each of another host. */
  async function writeGroup(group: readonly Beat[], wait: LockWait): Promise<void> {
    const known = await writeKnown(group, wait);
    const written: { readonly beat: Beat; readonly row: KnownService }[] = [];
    const unknown: Beat[] = [];
    for (const beat of group) {
      const row = known.get(beat.item.host);
      // A second registration also sets the uuid of an old row.
      if (row !== undefined && isAsRegistered(row, beat.item) && hasUuid(row)) written.push({ beat, row });
      else unknown.push(beat);
    }
    await agree(
      written.map(({ row }) => row),
      wait,
    );
    for (const { beat, row } of written) beat.resolve(row);
    await register(unknown, wait);
  }

  async function writeKnown(group: readonly Beat[], wait: LockWait): Promise<ReadonlyMap<string, ServiceRow>> {
    const [first] = group;
    if (first === undefined) return new Map();
    const { cell, binary } = first.item;
    const hosts = group.map(({ item }) => item.host);
    const uptimes = new Map(
      group.flatMap(({ item: { host, uptime } }) => (uptime === undefined ? [] : [[host, uptime]])),
    );
    const beats = { cell, binary, hosts, uptimes };
    const rows = await repeatLostRaces(() => writeHeartbeats(database, beats, downTimeSeconds, wait));
    return new Map(rows.map((row) => [row.host, row]));
  }

  async function register(group: readonly Beat[], wait: LockWait): Promise<void> {
    const [first] = group;
    if (first === undefined) return;
    const registrations = group.map(({ item }) => item);
    const rows = await repeatLostRaces(() =>
      registerServices(database, first.item, registrations, downTimeSeconds, wait),
    );
    const byHost = new Map(rows.map((row) => [row.host, row]));
    for (const { item, resolve, reject } of group) {
      const row = byHost.get(item.host);
      if (row !== undefined && hasUuid(row)) resolve(row);
      else reject(conflict(`The cell ${item.cell} was deleted just now.`));
    }
  }

  /**
   * Corrects the trait that marks providers of disabled services: the provider may be newer than the status of its
   * service, or another program may have written its traits. Nova's services do the same from time to time. Where the
   * provider is locked, a later heartbeat corrects it.
   */
  async function agree(rows: readonly ServiceRow[], wait: LockWait): Promise<void> {
    const nowMs = performance.now();
    const mustRefresh = nowMs - refreshedAtMs > refreshAgainMs || rows.some(({ disabled }) => disabled);
    if (!mustRefresh && rows.every((row) => agrees(fleet.known, row))) return;
    const current = await fleet.fresh();
    refreshedAtMs = nowMs;
    for (const row of rows) {
      if (agrees(current, row)) continue;
      await repairDisabledTrait(database, row.host, wait).catch((error: unknown) => {
        if (!isLockRefused(error)) throw error;
      });
    }
  }

  const beat = inBatches<Registration, KnownService>(
    database,
    {
      limit: batchLimit,
      everyMs: windowMs,
      conflictKeysOf: ({ cell, binary, host }) => [JSON.stringify([cell, binary, host])],
      // One heartbeat may name the wrong cell, or a text that the database cannot store: the other heartbeats are written
      // nevertheless.
      isOfOne: isFaultOfOne,
    },
    async (batch, wait) => {
      const groups = Map.groupBy(batch, ({ item }) => JSON.stringify([item.cell, item.binary]));
      const results = await Promise.allSettled([...groups.values()].map((group) => writeGroup(group, wait)));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
  );
  return { beat };
}

/** Whether the provider of a service, if there is one, has the trait exactly where the service is disabled. */
function agrees({ byName, traits }: Fleet, { host, binary, disabled }: ServiceRow): boolean {
  const provider = binary === computeBinary ? byName.get(host) : undefined;
  const trait = traits.byName.get(disabledTrait);
  if (provider === undefined || provider.parent !== undefined || trait === undefined) return true;
  return provider.traitIds.includes(trait.id) === disabled;
}

const isAsRegistered = (row: ServiceRow, { topic, zone }: Registration): boolean =>
  (topic === undefined || topic === row.topic) && (zone === undefined || zone === row.zone);

/** How often silent services are searched for, in milliseconds. */
const everyMs = 60_000;

/**
 * Deletes services that sent no heartbeat for `[compute] retire_after` seconds, once a minute. Every process does this;
 * several at once do no harm.
 *
 * @returns a function that stops it.
 */
export function retireSilentServices(
  database: Database,
  afterSeconds: number,
  reported: Reported,
): () => Promise<void> {
  if (afterSeconds === 0) return async () => {};
  return inBackground({
    everyMs,
    failed: reporting(reported, 'Silent services could not be retired; the next attempt is in a minute'),
    round: async () => {
      for (const { host, binary } of await retireServices(database, afterSeconds)) {
        reported.logger.info({ host, binary }, 'A silent service was retired');
      }
    },
  });
}
