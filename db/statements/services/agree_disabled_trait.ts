import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { utcNow } from '../../engine/time.ts';
import { raised } from '../generations.ts';
import { lockChangedTrees } from '../relied_locks.ts';
import { computeBinary } from './service_row.ts';

/** The trait on the provider of a disabled service. Every scheduler excludes providers with it. */
export const disabledTrait = 'COMPUTE_STATUS_DISABLED';

/**
 * Sets or removes the trait on the providers of hosts, by the status of the hosts' services. The provider of a host is
 * the root provider with the name of the host. A provider that changes gets the next generation, as if a client had put
 * its traits; a provider whose trait is right is not written.
 *
 * Run the statements after one that locks the services, in the same transaction. The first two lock the providers and their trees, so
 * that the last one, with a newer snapshot, sees the traits that earlier transactions wrote. Later writes find
 * another generation.
 */
export const agreeDisabledTrait = (hosts: readonly string[]): readonly RawBuilder<unknown>[] => [
  sql`select id from resource_providers where name = any(${hosts}::varchar[]) and parent_provider_id is null
    order by id for no key update`,
  lockChangedTrees(sql`name = any(${hosts}::varchar[]) and parent_provider_id is null`),
  sql`
    with pair as (
      select p.id, t.id as trait_id, s.disabled, exists (
          select from resource_provider_traits h where h.resource_provider_id = p.id and h.trait_id = t.id
        ) as marked
      from services s
      join resource_providers p on p.name = s.host and p.parent_provider_id is null
      join traits t on t.name = ${disabledTrait}
      where s.host = any(${hosts}::varchar[]) and s."binary" = ${computeBinary}
    ), differing as (
      select id, trait_id, disabled from pair where disabled <> marked
    ), bumped as (
      update resource_providers p set generation = ${raised(sql`p.generation`)}, updated_at = ${utcNow}
      from differing where p.id = differing.id
    ), removed as (
      delete from resource_provider_traits h using differing d
      where not d.disabled and h.resource_provider_id = d.id and h.trait_id = d.trait_id
    )
    insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
    select id, trait_id, ${utcNow} from differing where disabled on conflict do nothing`,
];

/**
 * Corrects the trait for a service that did not change: its provider is new, or a client wrote the provider's traits.
 */
export async function repairDisabledTrait(
  { transaction }: Pick<Database, 'transaction'>,
  host: string,
  wait: LockWait,
): Promise<void> {
  const lock = sql`select id from services where host = ${host} and "binary" = ${computeBinary} for no key update`;
  await transaction([lock, ...agreeDisabledTrait([host])], wait);
}
