import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { utcNow } from '../../engine/time.ts';
import { type ServiceRow, serviceColumns } from './service_row.ts';

/**
 * Records heartbeats of services of one cell and binary. The hosts are one array, which PostgreSQL looks up in the
 * order of the index. So the cost does not depend on the number of services, and two processes that write the same
 * services cannot deadlock.
 *
 * The statement is not prepared, and so is planned each time (0.1 ms): a plan from when the table was empty would read
 * the whole table.
 *
 * @param beats.uptimes how long their machines have been up, by host, for the agents that report it
 * @returns the services that exist; the other services must be registered
 */
export async function writeHeartbeats(
  { transaction }: Pick<Database, 'transaction'>,
  beats: {
    readonly cell: string;
    readonly binary: string;
    readonly hosts: readonly string[];
    readonly uptimes: ReadonlyMap<string, string>;
  },
  downTimeSeconds: number,
  wait: LockWait,
): Promise<readonly ServiceRow[]> {
  // As JSON, in which a host is found by binary search: with a join the hosts could be read in another order.
  const setUptimes =
    beats.uptimes.size === 0
      ? sql``
      : sql`, uptime = coalesce(${JSON.stringify(Object.fromEntries(beats.uptimes))}::jsonb ->> s.host, s.uptime)`;
  const statement = sql<ServiceRow>`
    /* planned each time */ update services s set last_seen_up = ${utcNow}${setUptimes}
    where s.cell_id = (select c.id from cells c where c.name = ${beats.cell}) and s."binary" = ${beats.binary}
      and s.host = any(${beats.hosts}::varchar[])
    returning ${serviceColumns(downTimeSeconds)}`;
  const [rows] = await transaction([statement], wait);
  return rows;
}
