import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { repeatLostRaces } from '../../engine/lost_race.ts';
import { giveUuids } from './give_uuids.ts';
import { hasUuid, type KnownService, type ServiceRow, serviceColumns } from './service_row.ts';

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
