import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { changedNodes, type JudgedNode } from '../providers/judged_provider.ts';
import type { OwnedConsumer } from './consumer_row.ts';
import { type ConsumerQuery, ofClass, pageOf } from './list_consumers.ts';

/** What a consumer has of one provider. */
export type HoldingRow = OwnedConsumer & {
  readonly consumer: string;
  readonly providerUuid: string;
  readonly providerName: string | null;
  readonly rootUuid: string;
  readonly rootName: string | null;
  /** Amounts by the name of the class, in the order of these names. */
  readonly resources: Readonly<Record<string, number>>;
  /** When these allocations were written. */
  readonly since: Date | null;
  /** When the term of the consumer expires; null without a term. */
  readonly expires: Date | null;
};

/** Which consumers, and what they hold: everything, or only of one class or of some providers. */
export type HoldingQuery = Pick<
  ConsumerQuery,
  'projectId' | 'userId' | 'consumerType' | 'namePart' | 'marker' | 'limit' | 'incomplete'
> & {
  readonly classId: number | undefined;
  /** The ids of the providers; undefined for all. */
  readonly providers: readonly number[] | undefined;
};

/** A page, and the UUID of its last consumer where further ones follow. */
export type HoldingPage = { readonly rows: readonly HoldingRow[]; readonly next: string | undefined };

/**
 * A page of what consumers hold, in the order of the UUIDs of the consumers, as of one snapshot. The page has all rows of a consumer: it
 * ends with the consumer with which it has `limit` rows or more.
 *
 * @param tree all providers of the tree by whose shape the providers were found; empty if they were found otherwise
 * @returns `changed` if the tree has another shape in the snapshot that the page is of
 */
export async function listHoldings(
  { kysely }: Pick<Database, 'kysely'>,
  query: HoldingQuery,
  tree: readonly JudgedNode[],
): Promise<HoldingPage | 'changed'> {
  const { limit, classId, providers } = query;
  const page = pageOf({
    ...query,
    name: undefined,
    expiringBefore: undefined,
    holding: { classId },
    providers: providers === undefined ? [] : [providers],
  });
  const isSelected = heldOf(classId, providers);
  const { rows } = await sql<ReadRow>`
    with ${tree.length === 0 ? sql`changed as (select where false)` : changedNodes(tree)}, ${page},
    sized as materialized (
      select page.*, (select count(distinct a.resource_provider_id) from allocations a where a.consumer_id = page.uuid ${isSelected}) as places
      from page
    ),
    counted as materialized (
      select sized.*, sum(places) over (order by uuid) - places as before, count(*) over (order by uuid) as index from sized
    ),
    shown as materialized (select * from counted where before < ${limit} and index <= ${limit})
    select (select exists (select from changed)) as "isChanged", (select count(*) from counted) > (select count(*) from shown) as "isMore",
      c.uuid as consumer, (select name from consumer_names where consumer_id = c.id) as name,
      (select external_id from projects where id = c.project_id) as "projectId",
      (select external_id from users where id = c.user_id) as "userId",
      (select name from consumer_types where id = c.consumer_type_id) as "consumerType",
      p.uuid as "providerUuid", p.name as "providerName", r.uuid as "rootUuid", r.name as "rootName", h.resources, h.since,
      (select expires_at from consumer_terms t where t.consumer_id = c.id and t.generation = c.generation) as expires
    from (select) as one left join shown c on true
    left join lateral (
      select a.resource_provider_id, json_object_agg(k.name, a.amount order by k.name) as resources, min(a.since) as since
      from (
        select a.resource_provider_id, a.resource_class_id, sum(a.used) as amount, min(a.created_at) as since from allocations a
        where a.consumer_id = c.uuid ${isSelected} group by 1, 2
      ) as a join resource_classes k on k.id = a.resource_class_id group by a.resource_provider_id offset 0
    ) as h on true
    left join lateral (select * from resource_providers where id = h.resource_provider_id offset 0) as p on true
    left join lateral (select * from resource_providers where id = coalesce(p.root_provider_id, p.id) offset 0) as r on true
    order by c.uuid, p.uuid`.execute(kysely);
  if (rows.some(({ isChanged }) => isChanged)) return 'changed';
  const last = rows.at(-1);
  return {
    rows: rows.filter((row): row is ReadRow & HoldingRow => row.providerUuid !== null),
    next: last?.isMore === true ? (last.consumer ?? undefined) : undefined,
  };
}

type ReadRow = { readonly isChanged: boolean; readonly isMore: boolean } & (
  | HoldingRow
  | { readonly consumer: string | null; readonly providerUuid: null }
);

const heldOf = (classId: number | undefined, providers: readonly number[] | undefined): RawBuilder<unknown> =>
  sql`${ofClass(classId)} ${providers === undefined ? sql`` : sql`and a.resource_provider_id = any(${providers}::integer[])`}`;
