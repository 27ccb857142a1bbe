import { type RawBuilder, sql } from 'kysely';

const drawn = sql`nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer`;

/**
 * The next id of the sequence that no provider has. It is known before the provider is inserted, since it may also be the root of that
 * provider and of others.
 *
 * @param row a value of the row that the id is for, which is not null: so each row gets an id of its own
 */
export const freeProviderId = (row: RawBuilder<unknown>): RawBuilder<number> => sql`(
  with recursive tried (id) as (
    select ${drawn} where ${row} is not null
    union all select ${drawn} from tried where exists (select from resource_providers p where p.id = tried.id)
  ) select id from tried where not exists (select from resource_providers p where p.id = tried.id))`;
