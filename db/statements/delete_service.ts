import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { computeBinary, type ServiceRow } from './service_row.ts';

/** Whether something in the tree of the provider that `services s` serves has allocations. */
const isHosting: RawBuilder<boolean> = sql`(s."binary" = ${sql.lit(computeBinary)} and exists (
  select from resource_providers root
  join resource_providers p on p.root_provider_id = root.id or p.id = root.id
  join allocations a on a.resource_provider_id = p.id
  where root.name = s.host and root.parent_provider_id is null))`;

/**
 * Deletes a service, unless its hypervisor hosts allocations. The provider stays as it is, with the trait that it has.
 *
 * @returns what kept it, if anything did: `gone` where there was no such row.
 */
export async function deleteService(
  { kysely }: Database,
  { cellId, id }: Pick<ServiceRow, 'cellId' | 'id'>,
): Promise<'deleted' | 'gone' | 'hosting'> {
  const { rows } = await sql<{ hosting: boolean | null; gone: boolean }>`
    with judged as materialized (
      select s.cell_id, s.id, ${isHosting} as hosting from services s where s.cell_id = ${cellId} and s.id = ${id}
    ), removed as (
      delete from services s using judged j where s.cell_id = j.cell_id and s.id = j.id and not j.hosting returning s.id
    )
    select (select hosting from judged) as hosting, exists (select from removed) as gone`.execute(kysely);
  if (rows[0]?.hosting) return 'hosting';
  return rows[0]?.gone ? 'deleted' : 'gone';
}

/**
 * Deletes the services that were not heard of for so long, but for those that host allocations, and those that an operator
 * disabled or forced down: that word would be lost, and they would come back without it.
 *
 * @returns the hosts and binaries of the deleted ones.
 */
export async function retireServices(
  { kysely }: Database,
  afterSeconds: number,
): Promise<readonly Pick<ServiceRow, 'host' | 'binary'>[]> {
  const { rows } = await sql<Pick<ServiceRow, 'host' | 'binary'>>`
    delete from services s
    where coalesce(s.last_seen_up, s.created_at) < ${utcNow} - make_interval(secs => ${afterSeconds}::integer)
      and not s.disabled and not s.forced_down and not ${isHosting}
    returning s.host, s."binary"`.execute(kysely);
  return rows;
}
