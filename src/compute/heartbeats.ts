import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { disabledTrait, repairDisabledTrait } from '../../db/statements/agree_disabled_trait.ts';
import { type Registration, registerServices } from '../../db/statements/register_services.ts';
import { computeBinary, hasUuid, type KnownService, type ServiceRow } from '../../db/statements/service_row.ts';
import { writeHeartbeats } from '../../db/statements/write_heartbeats.ts';
import { conflict } from '../errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../request_ids.ts';

/** Notes that services are alive; those that come within a moment of each other are written together. */
export type Heartbeats = {
  /**
   * Registers a service, or notes that it was heard of. It resolves once that is written.
   *
   * @throws a unique violation where another cell has the host.
   */
  beat(registration: Registration): Promise<KnownService>;
};

type Waiting = {
  readonly registration: Registration;
  readonly askedBy: readonly RequestIds[];
  readonly resolve: (row: KnownService) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * A write begins at least so long after the one before it, in milliseconds. A statement for one service costs about as much as
 * one for 30: with 1,000 heartbeats a second this makes 4 statements of 250.
 */
const windowMs = 250;

/** How often the picture of the providers is brought up to date by heartbeats alone, in milliseconds. */
const lookAgainMs = 10_000;

/** @param downTimeSeconds for how long a service is up after it was heard of */
export function openHeartbeats(database: Database, fleet: FleetKeeper, downTimeSeconds: number): Heartbeats {
  let queue: Waiting[] = [];
  let scheduled = false;
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let lookedAtMs = Number.NEGATIVE_INFINITY;

  const schedule = (): void => {
    if (scheduled || queue.length === 0) return;
    scheduled = true;
    setTimeout(flush, Math.max(0, lastStartMs + windowMs - performance.now()));
  };

  async function flush(): Promise<void> {
    lastStartMs = performance.now();
    const batch = queue;
    queue = [];
    const groups = Map.groupBy(batch, ({ registration }) => JSON.stringify([registration.cell, registration.binary]));
    await Promise.all([...groups.values()].map(writeGroup));
    scheduled = false;
    schedule();
  }

  /** Writes what concerns one cell and binary; never rejects. */
  function writeGroup(group: readonly Waiting[]): Promise<void> {
    const askedBy = group.flatMap((waiting) => waiting.askedBy);
    return onBehalfOf(askedBy, () => writeFor(group));
  }

  async function writeFor(group: readonly Waiting[]): Promise<void> {
    try {
      const known = await writeKnown(group);
      const written: { readonly waiting: Waiting; readonly row: KnownService }[] = [];
      const unknown = new Map<string, Waiting>();
      const again: Waiting[] = [];
      for (const waiting of group) {
        const { registration } = waiting;
        const row = known.get(registration.host);
        // Registering again gives an old row its uuid, too.
        if (row !== undefined && isAsRegistered(row, registration) && hasUuid(row)) written.push({ waiting, row });
        else if (unknown.has(registration.host)) again.push(waiting);
        else unknown.set(registration.host, waiting);
      }
      await register([...unknown.values()]);
      for (const waiting of again) await register([waiting]);
      await agree(written.map(({ row }) => row));
      for (const { waiting, row } of written) waiting.resolve(row);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  async function writeKnown(group: readonly Waiting[]): Promise<ReadonlyMap<string, ServiceRow>> {
    const [first] = group;
    if (first === undefined) return new Map();
    const { cell, binary } = first.registration;
    const hosts = [...new Set(group.map(({ registration }) => registration.host))];
    const rows = await repeatLostRaces(() => writeHeartbeats(database, { cell, binary, hosts }, downTimeSeconds));
    return new Map(rows.map((row) => [row.host, row]));
  }

  /** Registers services of one cell and binary and of different hosts; never rejects. */
  async function register(group: readonly Waiting[]): Promise<void> {
    const [first] = group;
    if (first === undefined) return;
    try {
      const registrations = group.map(({ registration }) => registration);
      const rows = await registerServices(database, first.registration, registrations, downTimeSeconds);
      const byHost = new Map(rows.map((row) => [row.host, row]));
      for (const { registration, resolve, reject } of group) {
        const row = byHost.get(registration.host);
        if (row !== undefined && hasUuid(row)) resolve(row);
        else reject(conflict(`The cell ${registration.cell} was deleted just now.`));
      }
    } catch (error) {
      // One of them is refused, or lost a race: the others must not suffer for it.
      if (group.length === 1) first.reject(error);
      else for (const waiting of group) await register([waiting]);
    }
  }

  /**
   * A provider may be younger than the status of its service, or somebody else may have written its traits: the service that
   * is alive sets it right, as Nova's does from time to time.
   */
  async function agree(rows: readonly ServiceRow[]): Promise<void> {
    const nowMs = performance.now();
    const mustLook = nowMs - lookedAtMs > lookAgainMs || rows.some(({ disabled }) => disabled);
    if (!mustLook && rows.every((row) => agrees(fleet.known, row))) return;
    const current = await fleet.fresh();
    lookedAtMs = nowMs;
    for (const row of rows) if (!agrees(current, row)) await repairDisabledTrait(database, row.host);
  }

  return {
    beat: (registration) =>
      new Promise((resolve, reject) => {
        queue.push({ registration, askedBy: requestsServed(), resolve, reject });
        schedule();
      }),
  };
}

/** Whether the provider of a service, if there is one, is marked just as the service says. */
function agrees({ byName, traits }: Fleet, { host, binary, disabled }: ServiceRow): boolean {
  const provider = binary === computeBinary ? byName.get(host) : undefined;
  const trait = traits.byName.get(disabledTrait);
  if (provider === undefined || provider.parent !== undefined || trait === undefined) return true;
  return provider.traitIds.includes(trait.id) === disabled;
}

const isAsRegistered = (row: ServiceRow, { topic, zone }: Registration): boolean =>
  (topic === undefined || topic === row.topic) && (zone === undefined || zone === row.zone);
