import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { agreeDisabledTrait } from './agree_disabled_trait.ts';
import { type ServiceRow, serviceColumns } from './service_row.ts';

/** What an operator says of a service; what is absent stays as it is. */
export type ServiceUpdate = {
  readonly status?: { readonly disabled: boolean; readonly reason: string | null };
  readonly forcedDown?: boolean;
};

/**
 * Updates a compute service, and puts the trait of disabled ones on its provider or takes it off, in one transaction. Who
 * updates the same service meanwhile waits, so that the trait is always that of the last status.
 *
 * @returns undefined where the service is gone.
 */
export async function updateService(
  { transaction }: Pick<Database, 'transaction'>,
  { cellId, id, host }: Pick<ServiceRow, 'cellId' | 'id' | 'host'>,
  { status, forcedDown }: ServiceUpdate,
  downTimeSeconds: number,
): Promise<ServiceRow | undefined> {
  const update = sql<ServiceRow>`
    update services s set updated_at = ${utcNow},
      disabled = coalesce(${status?.disabled ?? null}::boolean, s.disabled),
      disabled_reason = case when ${status === undefined}::boolean then s.disabled_reason
        else ${status?.reason ?? null}::text end,
      forced_down = coalesce(${forcedDown ?? null}::boolean, s.forced_down)
    where s.cell_id = ${cellId} and s.id = ${id} and s.host = ${host}
    returning ${serviceColumns(downTimeSeconds)}`;
  const [rows] = await transaction([update, ...agreeDisabledTrait([host])]);
  return rows[0];
}
