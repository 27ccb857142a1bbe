import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { computeBinary } from './service_row.ts';

/** What the provider of a disabled service has, and every scheduler forbids. */
export const disabledTrait = 'COMPUTE_STATUS_DISABLED';

/**
 * Brings the traits of hosts' providers, the root providers with the hosts' names, into agreement with the hosts' services: as a
 * client would that puts the changed traits, it bumps a provider's generation, and leaves alone what agrees already.
 *
 * Both statements belong behind one that locks the services, in the same transaction. The first locks the providers, so that the
 * second, with a newer snapshot, sees the traits that whoever was before us left; whoever comes after us finds another generation.
 */
export const agreeDisabledTrait = (hosts: readonly string[]): readonly RawBuilder<unknown>[] => [
  sql`select id from resource_providers where name = any(${hosts}::varchar[]) and parent_provider_id is null
    order by id for no key update`,
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
      update resource_providers p set generation = coalesce(p.generation, 0) + 1, updated_at = ${utcNow}
      from differing where p.id = differing.id
    ), removed as (
      delete from resource_provider_traits h using differing d
      where not d.disabled and h.resource_provider_id = d.id and h.trait_id = d.trait_id
    )
    insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
    select id, trait_id, ${utcNow} from differing where disabled on conflict do nothing`,
];

/** Does so for a service that is as it was: its provider is new, or somebody else wrote the provider's traits. */
export async function repairDisabledTrait({ transaction }: Pick<Database, 'transaction'>, host: string): Promise<void> {
  const lock = sql`select id from services where host = ${host} and "binary" = ${computeBinary} for no key update`;
  await transaction([lock, ...agreeDisabledTrait([host])]);
}
