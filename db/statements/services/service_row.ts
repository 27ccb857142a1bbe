import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/utc_now.ts';

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
    abs(extract(epoch from ${utcNow} - coalesce(s.last_seen_up, s.created_at))) <= ${downTimeSeconds}::integer, false
  ) as up,
  to_char(greatest(s.updated_at, s.last_seen_up), 'YYYY-MM-DD"T"HH24:MI:SS.US') as "updatedAt"`;
