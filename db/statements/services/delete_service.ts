import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/time.ts';
import { computeBinary, type KnownService, type ServiceRow } from './service_row.ts';

/** Whether a provider in the tree of the host of `services s` has allocations. */
const isHosting: RawBuilder<boolean> = sql`(s."binary" = ${sql.lit(computeBinary)} and exists (
  select from resource_providers root
  join resource_providers p on p.root_provider_id = root.id or p.id = root.id
  join allocations a on a.resource_provider_id = p.id
  where root.name = s.host and root.parent_provider_id is null))`;

/**
 * Deletes a service, unless its hypervisor hosts allocations. The provider and its traits stay as they are.
 *
 * The first statement locks the row, the next one checks the allocations: the snapshot of a statement that waits for a
 * lock becomes stale. The uuid identifies the service that the caller read, even if another server, after a failover,
 * used its id for another service.
 *
 * @returns why it was not deleted, if so: `gone` if there was no such row.
 */
export async function deleteService(
  { write }: Pick<Database, 'write'>,
  { uuid }: Pick<KnownService, 'uuid'>,
): Promise<'deleted' | 'gone' | 'hosting'> {
  const lock = sql`select id from services where uuid = ${uuid} for update`;
  const remove = sql<{ hosting: boolean; gone: boolean }>`
    with judged as materialized (
      select s.uuid, ${isHosting} as hosting from services s where s.uuid = ${uuid}
    ), removed as (
      delete from services s using judged j where s.uuid = j.uuid and not j.hosting returning s.id
    )
    select hosting, exists (select from removed) as gone from judged`;
  const [, rows] = await write([lock, remove]);
  if (rows[0]?.hosting) return 'hosting';
  return rows[0]?.gone ? 'deleted' : 'gone';
}

/**
 * Deletes the services that sent no heartbeat for this time. Services that host allocations stay. Services that an
 * operator disabled or forced down stay as well: if they registered again, this status would be lost.
 *
 * The first statement locks these services, as above, but skips those that another transaction has locked: they are
 * being written, and are checked again the next time. The second statement checks the locked services once more.
 *
 * @returns the hosts and binaries of the deleted services.
 */
export function retireServices(
  { kysely }: Database,
  afterSeconds: number,
): Promise<readonly Pick<ServiceRow, 'host' | 'binary'>[]> {
  const isSilent = sql`coalesce(s.last_seen_up, s.created_at) < ${utcNow} - make_interval(secs => ${afterSeconds}::integer)
    and not s.disabled and not s.forced_down and not ${isHosting}`;
  return kysely.transaction().execute(async (trx) => {
    const silent = await sql<Pick<ServiceRow, 'cellId' | 'id'>>`select s.cell_id as "cellId", s.id from services s
      where ${isSilent} for update skip locked`.execute(trx);
    if (silent.rows.length === 0) return [];
    const retired = await sql<Pick<ServiceRow, 'host' | 'binary'>>`
      delete from services s
      using unnest(${silent.rows.map(({ cellId }) => cellId)}::integer[], ${silent.rows.map(({ id }) => id)}::integer[])
        as locked (cell_id, id)
      where s.cell_id = locked.cell_id and s.id = locked.id and ${isSilent}
      returning s.host, s."binary"`.execute(trx);
    return retired.rows;
  });
}
