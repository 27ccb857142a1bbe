import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { agreeDisabledTrait } from './agree_disabled_trait.ts';
import { computeBinary, type ServiceRow, serviceColumns } from './service_row.ts';

export type Registration = {
  readonly host: string;
  readonly binary: string;
  /** The name of the cell; it is made where there is none. */
  readonly cell: string;
  /** What is absent stays as it is. */
  readonly topic: string | undefined;
  readonly zone: string | undefined;
};

/**
 * Adds a service to its cell, or notes that it was heard of. Its id is one higher than any that the cell ever gave; the row of
 * the cell is locked meanwhile.
 *
 * @returns undefined where the row is gone again.
 * @throws a unique violation of uniq_services0compute_host where another cell has the host.
 */
export async function registerService(
  { kysely, transaction }: Database,
  { host, binary, cell, topic, zone }: Registration,
  downTimeSeconds: number,
): Promise<ServiceRow | undefined> {
  const [, , rows] = await transaction(
    [
      sql`insert into cells (uuid, name, created_at) values (gen_random_uuid()::text, ${cell}, ${utcNow})
        on conflict (name) do nothing`,
      sql`update cells c set updated_at = ${utcNow},
          last_service_id = greatest(c.last_service_id, (select max(s.id) from services s where s.cell_id = c.id)) + 1
        where c.name = ${cell}`,
      sql`insert into services as s (cell_id, id, uuid, host, "binary", topic, zone, created_at, last_seen_up)
        select c.id, c.last_service_id, gen_random_uuid()::text, ${host}, ${binary}, ${topic ?? null}::text, ${zone ?? null}::text, ${utcNow},
          ${utcNow}
        from cells c where c.name = ${cell}
        on conflict (host, "binary", cell_id) do update set last_seen_up = excluded.last_seen_up,
          uuid = coalesce(s.uuid, excluded.uuid), topic = coalesce(excluded.topic, s.topic),
          zone = coalesce(excluded.zone, s.zone)
        returning ${serviceColumns(downTimeSeconds)}`,
      ...(binary === computeBinary ? agreeDisabledTrait(host) : []),
    ].map((statement) => statement.compile(kysely)),
  );
  return rows?.[0] as ServiceRow | undefined; // the columns of serviceColumns
}
