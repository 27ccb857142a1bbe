import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { hasSqlstate, isDatabaseError, isTakenIn, NoIdLeft, sqlstate } from '../../engine/failures.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { utcNow } from '../../engine/time.ts';
import { agreeDisabledTrait } from './agree_disabled_trait.ts';
import { computeBinary, type ServiceRow, serviceColumns } from './service_row.ts';

/** What an agent reports of its service. */
export type Registration = {
  readonly host: string;
  readonly binary: string;
  /** The name of the cell, which is created if it does not exist. */
  readonly cell: string;
  /** Fields that are absent stay as they are. */
  readonly topic: string | undefined;
  readonly zone: string | undefined;
  /** How long the machine has been up, as the program `uptime` prints it. */
  readonly uptime: string | undefined;
};

/**
 * Adds services of one binary to a cell, or records a heartbeat of those that exist. New ids are higher than all ids
 * that the cell ever assigned; the row of the cell is locked meanwhile. Another program may insert one of these ids nevertheless: then the
 * transaction is repeated with later ones.
 *
 * @param registrations of different hosts
 * @returns the services; none if the cell was deleted just now.
 * @throws a unique violation of uniq_services0compute_host if one of the hosts is in another cell; then none was
 *   registered. `NoIdLeft` if the ids of the cell have ended.
 */
export async function registerServices(
  { transaction }: Pick<Database, 'transaction'>,
  { cell, binary }: Pick<Registration, 'cell' | 'binary'>,
  registrations: readonly Registration[],
  downTimeSeconds: number,
  wait: LockWait,
): Promise<readonly ServiceRow[]> {
  const hosts = registrations.map(({ host }) => host);
  const statements = [
    sql`insert into cells (uuid, name, created_at) values (gen_random_uuid()::text, ${cell}, ${utcNow})
      on conflict (name) do nothing`,
    sql`update cells c set updated_at = ${utcNow}, last_service_id = ${hosts.length}::integer +
        greatest(c.last_service_id, (select max(s.id) from services s where s.cell_id = c.id))
      where c.name = ${cell}`,
    sql<ServiceRow>`insert into services as s (cell_id, id, uuid, host, "binary", topic, zone, uptime, created_at, last_seen_up)
      select c.id, c.last_service_id - ${hosts.length}::integer + index, gen_random_uuid()::text, r.host, ${binary}::varchar,
        r.topic, r.zone, r.uptime, ${utcNow}, ${utcNow}
      from cells c, unnest(${hosts}::varchar[], ${registrations.map(({ topic }) => topic ?? null)}::varchar[],
        ${registrations.map(({ zone }) => zone ?? null)}::varchar[],
        ${registrations.map(({ uptime }) => uptime ?? null)}::varchar[]) with ordinality as r (host, topic, zone, uptime, index)
      where c.name = ${cell} order by r.host -- so that two transactions that register the same do not wait for each other in a circle
      on conflict (host, "binary", cell_id) do update set last_seen_up = excluded.last_seen_up,
        uuid = coalesce(s.uuid, excluded.uuid), topic = coalesce(excluded.topic, s.topic),
        zone = coalesce(excluded.zone, s.zone), uptime = coalesce(excluded.uptime, s.uptime)
      returning ${serviceColumns(downTimeSeconds)}`,
    ...(binary === computeBinary ? agreeDisabledTrait(hosts) : []),
  ] as const;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [, , rows] = await transaction(statements, wait);
      return rows;
    } catch (error) {
      // The only number that the statements compute is the id.
      if (hasSqlstate(error, sqlstate.numberOutOfRange)) {
        throw new NoIdLeft(`a service of cell ${cell} has the id 2147483647 or one near it, the last one`, {
          cause: error,
        });
      }
      const isIdTaken = isTakenIn(error, 'services') && isDatabaseError(error) && error.constraint === 'services_pkey';
      if (!isIdTaken) throw error;
      if (attempt === attempts) throw new NoIdLeft(`the ids of services in cell ${cell} are taken`, { cause: error });
    }
  }
}

/** How often a registration is attempted whose ids another program takes at the same time. */
const attempts = 5;
