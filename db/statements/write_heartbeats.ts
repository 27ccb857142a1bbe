import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { type ServiceRow, serviceColumns } from './service_row.ts';

/**
 * Notes that services of one cell and binary were heard of now. The hosts are one array, which PostgreSQL looks up in the index in
 * its order: the cost does not depend on how many services there are, and two processes that write the same ones do not
 * wait for each other in a circle.
 *
 * It is not prepared, and so planned each time (0.1 ms): a plan from when the table was empty would read all of it.
 *
 * @returns the services that there are; the others must be registered.
 */
export async function writeHeartbeats(
  { kysely }: Database,
  beats: { readonly cell: string; readonly binary: string; readonly hosts: readonly string[] },
  downTimeSeconds: number,
): Promise<readonly ServiceRow[]> {
  const { rows } = await sql<ServiceRow>`
    /* planned each time */ update services s set last_seen_up = ${utcNow}
    where s.cell_id = (select c.id from cells c where c.name = ${beats.cell}) and s."binary" = ${beats.binary}
      and s.host = any(${beats.hosts}::varchar[])
    returning ${serviceColumns(downTimeSeconds)}`.execute(kysely);
  return rows;
}
