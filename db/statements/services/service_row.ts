import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { repeatLostRaces } from '../../engine/failures.ts';
import { utcNow } from '../../engine/time.ts';

/** The binary of the agents that serve providers. Services of other binaries are only listed. */
export const computeBinary = 'nova-compute';

/** A service as the statements on table `services` return it. */
export type ServiceRow = {
  readonly cellId: number;
  /** Unique within the cell. */
  readonly id: number;
  /** Null in an old row that was neither read nor migrated yet. */
  readonly uuid: string | null;
  readonly host: string;
  readonly binary: string;
  readonly topic: string | null;
  readonly zone: string | null;
  readonly disabled: boolean;
  readonly disabledReason: string | null;
  readonly forcedDown: boolean;
  /** Whether its last heartbeat is recent enough, by the clock of the database, and it is not forced down. */
  readonly up: boolean;
  /** How long its machine has been up, as its agent last reported it; null if it never did. */
  readonly uptime: string | null;
  /** When the row was last written, by heartbeats as well: `2026-01-31T12:00:00.000000`, UTC. */
  readonly updatedAt: string | null;
};

/** A service that has its uuid. */
export type KnownService = ServiceRow & { readonly uuid: string };

/** Whether a service has a uuid. */
export const hasUuid = (row: ServiceRow): row is KnownService => row.uuid !== null;

/**
 * The columns of a ServiceRow, of `services s`.
 *
 * @param downTimeSeconds how long a service counts as up after a heartbeat. A heartbeat in the future, which occurs
 *   when the clock was set back, is judged by the same distance.
 */
export const serviceColumns = (downTimeSeconds: number): RawBuilder<unknown> => sql`
  s.cell_id as "cellId", s.id, s.uuid, s.host, s."binary", s.topic, s.zone, s.disabled,
  s.disabled_reason as "disabledReason", s.forced_down as "forcedDown", s.uptime,
  not s.forced_down and coalesce(
    abs(extract(epoch from ${utcNow}) - extract(epoch from coalesce(s.last_seen_up, s.created_at))) <= ${downTimeSeconds}::integer, false
  ) as up,
  to_char(greatest(s.updated_at, s.last_seen_up), 'YYYY-MM-DD"T"HH24:MI:SS.US') as "updatedAt"`;

/**
 * Sets a uuid for old services without one. Their rows are locked in the order of their keys, so that two processes do not wait
 * for each other in a circle: the second one waits for the first, and changes nothing.
 *
 * @param which of the services `s`
 * @param limit how many services at most; without it, all
 */
export const giveUuids = (which: RawBuilder<unknown>, limit?: number) => sql<{ readonly id: number }>`
    update services s set uuid = gen_random_uuid()::text
    from (
      select cell_id, id from services s where uuid is null and ${which}
      order by cell_id, id ${limit === undefined ? sql`` : sql`limit ${sql.lit(limit)}`} for update
    ) as old
    where s.cell_id = old.cell_id and s.id = old.id
    returning s.id`;

/** Which services are read. A field that is absent is not compared. */
export type ServiceFilter = {
  readonly host?: string | undefined;
  readonly binary?: string | undefined;
  readonly uuid?: string | undefined;
  /** The integer id, which services of several cells may have. */
  readonly id?: number | undefined;
};

/**
 * Reads services in the order of cells and ids. An old row without a uuid gets one before it is returned, so that all
 * processes return the same one.
 *
 * @returns undefined if rows have got a uuid, and so must be read again
 */
export async function readServices(
  database: Database,
  filter: ServiceFilter,
  downTimeSeconds: number,
): Promise<readonly KnownService[] | undefined> {
  const rows = await select(database, filter, downTimeSeconds);
  const whole = rows.filter(hasUuid);
  if (whole.length === rows.length) return whole;
  await repeatLostRaces(() => giveUuids(condition(filter)).execute(database.kysely));
  return undefined;
}

async function select({ kysely }: Database, filter: ServiceFilter, downTimeSeconds: number) {
  const { rows } = await sql<ServiceRow>`select ${serviceColumns(downTimeSeconds)} from services s
    where ${condition(filter)} order by s.cell_id, s.id`.execute(kysely);
  return rows;
}

function condition({ host, binary, uuid, id }: ServiceFilter) {
  const parts = [
    ...(host === undefined ? [] : [sql`s.host = ${host}`]),
    ...(binary === undefined ? [] : [sql`s."binary" = ${binary}`]),
    ...(uuid === undefined ? [] : [sql`s.uuid = ${uuid}`]),
    ...(id === undefined ? [] : [sql`s.id = ${id}`]),
  ];
  return parts.length === 0 ? sql`true` : sql.join(parts, sql` and `);
}
