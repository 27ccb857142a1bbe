import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { type ConsumerRow, selectConsumerRows } from './consumer_row.ts';

/** One consumer, with a record or with old allocations only; undefined if there is neither. */
export async function readConsumer({ kysely }: Database, uuid: string): Promise<ConsumerRow | undefined> {
  const one = sql`(
      select w.uuid, r.id, r.project_id, r.user_id, r.consumer_type_id, r.generation, r.created_at, r.updated_at, r.etag
      from (select ${uuid}::text as uuid) as w left join consumers r on r.uuid = w.uuid
      where r.id is not null or exists (select from allocations a where a.consumer_id = w.uuid)
    ) as c`;
  const { rows } = await selectConsumerRows(one).execute(kysely);
  return rows[0];
}
