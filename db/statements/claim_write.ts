import { type RawBuilder, sql } from 'kysely';
import type { SeenAllocation } from './seen_allocations.ts';
import type { InventoryValues } from './write_inventories.ts';

/** A provider that a claim was judged by: it must still have this generation, and gets one higher by `bump`. */
export type ProviderGuard = { readonly providerId: number; readonly generation: number; readonly bump: number };

/** A consumer that a claim writes: all its allocations are replaced. */
export type ConsumerWrite = {
  readonly uuid: string;
  /** The generation that it must still have; null where there must be no record. */
  readonly generation: number | null;
  /** The record that must have it, by its id; absent for whichever there is. One that is made anew starts at the same generation. */
  readonly recordId?: number | undefined;
  /** Without a record: whether old allocations are known to be there. Unknown ones lose the guard. */
  readonly hasOldAllocations: boolean;
  readonly projectExternalId: string;
  readonly userExternalId: string;
  /** Null keeps the type that it has. The entity tag is of this one. */
  readonly consumerType: string | null;
  /** None removes the consumer. */
  readonly allocations: readonly { readonly providerId: number; readonly classId: number; readonly used: number }[];
  /** The entity tag of the allocations; null where there are none. */
  readonly etag: string | null;
  /** The allocations that it must still have, exactly: where the client said what it has seen, or no generation proves it. */
  readonly seen?: readonly SeenAllocation[] | undefined;
};

/** Inventories that are replaced together with the allocations (POST /reshaper). */
export type InventoryWrite = {
  readonly providerId: number;
  readonly put: readonly InventoryValues[];
  readonly remove: readonly number[];
};

/** A judged claim, ready to be written: all of it, or nothing where one of its guards is lost. */
export type ClaimWrite = {
  readonly providers: readonly ProviderGuard[];
  readonly consumers: readonly ConsumerWrite[];
  readonly inventories: readonly InventoryWrite[];
  /** The custom classes of the allocations, which must still have these names: upstream lets them be renamed (before 1.7). */
  readonly customClasses?: readonly { readonly classId: number; readonly name: string }[];
};

/*
 * A batch of claims as tables of a statement.
 */

/** Rows that belong to claims, by the claim's place in the batch, as parallel arrays: one text for any number of them. */
const numbered = <Row>(claims: readonly ClaimWrite[], rowsOf: (claim: ClaimWrite) => readonly Row[]) => {
  const rows = claims.flatMap((claim, place) => rowsOf(claim).map((row) => ({ place, row })));
  return {
    claim: rows.map(({ place }) => place),
    column: <Value>(value: (row: Row) => Value): Value[] => rows.map(({ row }) => value(row)),
  };
};

/**
 * Table `consumer`: the consumers, with the ids of their owners and types, null where these do not exist. Owners are looked for all
 * at once: a plan of a time when there were few may read all of them each time that it looks.
 */
export function claimedConsumers(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, ({ consumers }) => consumers);
  const projects = column((c) => c.projectExternalId);
  const users = column((c) => c.userExternalId);
  return sql`
    with project as materialized (select id, external_id from projects where external_id = any(${[...new Set(projects)]}::text[])),
      owner as materialized (select id, external_id from users where external_id = any(${[...new Set(users)]}::text[]))
    select c.*, (select id from project where external_id = c.project_name) as project_id,
      (select id from owner where external_id = c.user_name) as user_id,
      (select id from consumer_types where name = c.type_name) as type_id
    from unnest(${claim}::integer[], ${column((c) => c.uuid)}::text[], ${column((c) => c.generation)}::integer[],
      ${column((c) => c.hasOldAllocations)}::boolean[], ${column((c) => c.allocations.length === 0)}::boolean[],
      ${projects}::text[], ${users}::text[],
      ${column((c) => c.consumerType)}::text[], ${column((c) => c.etag)}::text[],
      ${column((c) => c.recordId ?? null)}::integer[]
    ) as c (claim, uuid, generation, has_old, emptied, project_name, user_name, type_name, etag, record_id)`;
}

/** The providers of the guards, each once. */
export const providerIds = (claims: readonly ClaimWrite[]): readonly number[] => [
  ...new Set(claims.flatMap(({ providers }) => providers.map(({ providerId }) => providerId))),
];

/** Table `guard`: the providers by which the claims were judged. */
export function providerGuards(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, ({ providers }) => providers);
  return sql`select * from unnest(${claim}::integer[], ${column((g) => g.providerId)}::integer[],
    ${column((g) => g.generation)}::integer[], ${column((g) => g.bump)}::integer[]
    ) as g (claim, provider_id, generation, bump)`;
}

/** Table `allocation`: what the consumers are to have. */
export function newAllocations(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, ({ consumers }) =>
    consumers.flatMap(({ uuid, allocations }) => allocations.map((allocation) => ({ uuid, ...allocation }))),
  );
  return sql`select * from unnest(${claim}::integer[], ${column((a) => a.uuid)}::text[],
    ${column((a) => a.providerId)}::integer[], ${column((a) => a.classId)}::integer[], ${column((a) => a.used)}::integer[]
    ) as a (claim, consumer_uuid, provider_id, class_id, used)`;
}

/** Table `custom_class`: the names by which the clients know classes. */
export function customClasses(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, (write) => write.customClasses ?? []);
  return sql`select * from unnest(${claim}::integer[], ${column((c) => c.classId)}::integer[],
    ${column((c) => c.name)}::text[]) as c (claim, class_id, name)`;
}

/** Table `inventory`: what the providers are to have. */
export function newInventories(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, ({ inventories }) =>
    inventories.flatMap(({ providerId, put }) => put.map((values) => ({ providerId, ...values }))),
  );
  return sql`select * from unnest(${claim}::integer[], ${column((i) => i.providerId)}::integer[],
    ${column((i) => i.classId)}::integer[], ${column((i) => i.total)}::integer[], ${column((i) => i.reserved)}::integer[],
    ${column((i) => i.minUnit)}::integer[], ${column((i) => i.maxUnit)}::integer[], ${column((i) => i.stepSize)}::integer[],
    ${column((i) => i.allocationRatio)}::float8[]
    ) as i (claim, provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)`;
}

/** Table `inventory_to_remove`: what the providers are to have no more. */
export function inventoriesToRemove(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { claim, column } = numbered(claims, ({ inventories }) =>
    inventories.flatMap(({ providerId, remove }) => remove.map((classId) => ({ providerId, classId }))),
  );
  return sql`select * from unnest(${claim}::integer[], ${column((i) => i.providerId)}::integer[],
    ${column((i) => i.classId)}::integer[]) as r (claim, provider_id, class_id)`;
}
