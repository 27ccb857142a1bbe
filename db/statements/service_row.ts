import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../utc_now.ts';

/** The agent that serves a provider; services of other kinds are only listed. */
export const computeBinary = 'nova-compute';

/** A service as the statements on table `services` return it. */
export type ServiceRow = {
  readonly cellId: number;
  /** Unique within the cell. */
  readonly id: number;
  /** Null in an old row that nobody has mended yet. */
  readonly uuid: string | null;
  readonly host: string;
  readonly binary: string;
  readonly topic: string | null;
  readonly zone: string | null;
  readonly disabled: boolean;
  readonly disabledReason: string | null;
  readonly forcedDown: boolean;
  /** Whether it was heard of within the window of liveness, and nobody forced it down: by the clock of the database. */
  readonly up: boolean;
  /** When anything of it was last written, heartbeats too: `2026-01-31T12:00:00.000000`, UTC. */
  readonly updatedAt: string | null;
};

/** A service that has its uuid. */
export type KnownService = ServiceRow & { readonly uuid: string };

/** Whether a service has its uuid already. */
export const hasUuid = (row: ServiceRow): row is KnownService => row.uuid !== null;

/**
 * The columns of a ServiceRow, of `services s`.
 *
 * @param downTimeSeconds for how long a service is up after it was heard of; a clock that went back counts the same.
 */
export const serviceColumns = (downTimeSeconds: number): RawBuilder<unknown> => sql`
  s.cell_id as "cellId", s.id, s.uuid, s.host, s."binary", s.topic, s.zone, s.disabled,
  s.disabled_reason as "disabledReason", s.forced_down as "forcedDown",
  not s.forced_down and coalesce(
    abs(extract(epoch from ${utcNow} - coalesce(s.last_seen_up, s.created_at))) <= ${downTimeSeconds}::integer, false
  ) as up,
  to_char(greatest(s.updated_at, s.last_seen_up), 'YYYY-MM-DD"T"HH24:MI:SS.US') as "updatedAt"`;
