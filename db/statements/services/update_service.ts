import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/time.ts';
import { agreeDisabledTrait } from './agree_disabled_trait.ts';
import { type ServiceRow, serviceColumns } from './service_row.ts';

/** The changes that an operator makes to a service. Fields that are absent stay as they are. */
export type ServiceUpdate = {
  readonly status?: { readonly disabled: boolean; readonly reason: string | null };
  readonly forcedDown?: boolean;
};

/**
 * Updates a compute service, and adds or removes the trait of disabled services on its provider, in one transaction.
 * Another update of the same service waits for it, so that the trait always matches the last status.
 *
 * @returns undefined if the service was deleted.
 */
export async function updateService(
  { write }: Pick<Database, 'write'>,
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
  const [rows] = await write([update, ...agreeDisabledTrait([host])]);
  return rows[0];
}
