import { type RawBuilder, sql } from 'kysely';
import { carryTermsOver, noteRewritten } from '../consumers/set_term.ts';
import { numbered } from '../numbered_rows.ts';
import type { InventoryValues } from '../providers/write_inventories.ts';
import type { CountedWrite } from './project_usages.ts';
import type { SeenAllocation } from './read_allocations.ts';
import type { WaitingRow } from './waiting.ts';

/** A provider that a claim was judged by. It must still have this generation, which the write raises by `bump`. */
export type ProviderGuard = { readonly providerId: number; readonly generation: number; readonly bump: number };

/** A consumer that a claim writes: all its allocations are replaced. */
export type ConsumerWrite = {
  readonly uuid: string;
  /** The generation that the consumer must still have; null if it must have no record. */
  readonly generation: number | null;
  /** Of a consumer with a record: how many generations the former consumers with its UUID had. For the answer. */
  readonly formerGenerations?: number;
  /**
   * The id of the record that must have this generation; absent for any record. A record that was deleted and
   * created again has the same generation as at first.
   */
  readonly recordId?: number | undefined;
  /**
   * For a consumer without a record: whether it is known to have old allocations. If it has unknown ones, the claim is
   * not written.
   */
  readonly hasOldAllocations: boolean;
  readonly projectExternalId: string;
  readonly userExternalId: string;
  /** Null keeps the present type. `etag` is the tag with this type. */
  readonly consumerType: string | null;
  /** An empty list removes the consumer. If the consumer does not exist, the statement only proves that, and writes nothing for it. */
  readonly allocations: readonly { readonly providerId: number; readonly classId: number; readonly used: number }[];
  /** The entity tag of the allocations; null if there are none. */
  readonly etag: `W/"${string}"` | null;
  /**
   * The exact allocations that the consumer must still have: set if the client named what it has seen, or if no
   * generation proves it.
   */
  readonly seen?: readonly SeenAllocation[] | undefined;
  /** After which time the consumer is removed. Without a term the consumer does not expire. */
  readonly term?: ClaimedTerm | undefined;
  /** The name that the consumer gets; null for none, and undefined keeps its present name. */
  readonly name?: string | null | undefined;
  /** The name that the consumer had. For the answer. */
  readonly formerName?: string | null;
};

/** Whether a consumer has nothing, before and after the claim. */
export const isAbsent = ({ generation, hasOldAllocations, allocations }: ConsumerWrite): boolean =>
  generation === null && !hasOldAllocations && allocations.length === 0;

/**
 * Whether the claim takes something from each provider whose generation it raises. Then the rows of its allocations in the change
 * log name these providers, also if another program has removed allocations that the claim replaces.
 */
export const takesFromEach = ({ providers, consumers, inventories }: ClaimWrite): boolean => {
  if (inventories.length > 0) return false;
  const taken = new Set(consumers.flatMap(({ allocations }) => allocations.map(({ providerId }) => providerId)));
  return providers.every(({ providerId }) => taken.has(providerId));
};

/** The number of seconds from the write on; or `carried over`: the consumer keeps its term, if it has one. */
export type ClaimedTerm = { readonly seconds: number } | 'carried over';

/** Inventories that are replaced together with the allocations (POST /reshaper). */
export type InventoryWrite = {
  readonly providerId: number;
  readonly put: readonly InventoryValues[];
  readonly remove: readonly number[];
};

/** A class or a trait, and the name by which a claim found it. */
export type NamedId = { readonly id: number; readonly name: string };

/** A consumer that a claim by query names, as it was when the claim was judged. */
export type AffinityGuard = {
  readonly uuid: string;
  /** The generation and the id of its record; null if it has none. */
  readonly generation: number | null;
  readonly recordId: number | null;
  /** The ids of the providers of its allocations. */
  readonly providerIds: readonly number[];
};

/** Whether a consumer that a claim names has nothing, and no record that could be locked. */
export const isNowhere = ({ generation, providerIds }: AffinityGuard): boolean =>
  generation === null && providerIds.length === 0;

/** A judged claim, ready to be written. If one of its guards fails, nothing of it is written. */
export type ClaimWrite = {
  readonly providers: readonly ProviderGuard[];
  readonly consumers: readonly ConsumerWrite[];
  readonly inventories: readonly InventoryWrite[];
  /**
   * The custom classes of the allocations and of the queries, and the custom traits of the queries, which must still have these
   * names: clients can delete them, and rename classes (before 1.7).
   */
  readonly customClasses?: readonly NamedId[];
  readonly customTraits?: readonly NamedId[];
  /**
   * The classes that must keep these names until the claim is written: the classes of the inventories to put, and those that If-Match
   * describes.
   */
  readonly keptClasses?: readonly NamedId[];
  /**
   * The ids of the providers whose inventories, traits, aggregates, UUIDs and parents must be as they were judged. For a claim by query
   * these include providers that the claim takes nothing from, and with If-Match the providers of its consumers' allocations.
   */
  readonly reliedOn?: readonly number[];
  /** The ids of the roots of those providers of `reliedOn` whose rows the claim does not lock. */
  readonly reliedOnTrees?: readonly number[];
  /** The consumers that its queries name, which must be as they were, and stay so until the claim is written. */
  readonly affinity?: readonly AffinityGuard[];
  /**
   * The consumers of the claim whose queries name other consumers, and the named consumers. Transactions that share such a consumer run
   * one after the other, so that each sees where the earlier ones have placed it.
   */
  readonly relatedConsumers?: readonly string[];
  /** Present while usages are counted: the amounts that the claim adds to the usages, and the limits that it must not exceed. */
  readonly counted?: CountedWrite | undefined;
  /** Whether the claim is written only if all claims before it in the batch that also have this flag are written. */
  readonly inOrder?: boolean;
  /** Present for a claim that waits, or may wait. */
  readonly waitingRow?: WaitingRow | undefined;
};

/*
 * The functions below turn a batch of claims into tables of the statement in write_claims.ts. `claim` is always the index of
 * the claim in the batch.
 */

/**
 * Table `consumer`: the consumers with the ids of their owners and types, which are null if these do not exist. All
 * owners are looked up at once: a plan from a time when there were few may read the whole table for each look-up.
 */
export function claimedConsumers(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ consumers }) => consumers);
  const projects = column((c) => c.projectExternalId);
  const users = column((c) => c.userExternalId);
  return sql`
    with project as materialized (select id, external_id from projects where external_id = any(${[...new Set(projects)]}::text[])),
      owner as materialized (select id, external_id from users where external_id = any(${[...new Set(users)]}::text[]))
    select c.*, (select id from project where external_id = c.project_name) as project_id,
      (select id from owner where external_id = c.user_name) as user_id,
      (select id from consumer_types where name = c.type_name) as type_id
    from unnest(${index}::integer[], ${column((c) => c.uuid)}::text[], ${column((c) => c.generation)}::integer[],
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
  const { index, column } = numbered(claims, ({ providers }) => providers);
  return sql`select * from unnest(${index}::integer[], ${column((g) => g.providerId)}::integer[],
    ${column((g) => g.generation)}::integer[], ${column((g) => g.bump)}::integer[]
    ) as g (claim, provider_id, generation, bump)`;
}

/** Table `allocation`: the new allocations of the consumers. */
export function newAllocations(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ consumers }) =>
    consumers.flatMap(({ uuid, allocations }) => allocations.map((allocation) => ({ uuid, ...allocation }))),
  );
  return sql`select * from unnest(${index}::integer[], ${column((a) => a.uuid)}::text[],
    ${column((a) => a.providerId)}::integer[], ${column((a) => a.classId)}::integer[], ${column((a) => a.used)}::integer[]
    ) as a (claim, consumer_uuid, provider_id, class_id, used)`;
}

/** Rows (claim, id, name): classes or traits, by the names that the clients know. */
export function namedIds(
  claims: readonly ClaimWrite[],
  of: 'customClasses' | 'customTraits' | 'keptClasses',
): RawBuilder<unknown> {
  const { index, column } = numbered(claims, (write) => write[of] ?? []);
  return sql`select * from unnest(${index}::integer[], ${column(({ id }) => id)}::integer[],
    ${column(({ name }) => name)}::text[]) as n (claim, id, name)`;
}

/** Table `inventory`: the inventories to write. */
export function newInventories(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ inventories }) =>
    inventories.flatMap(({ providerId, put }) => put.map((values) => ({ providerId, ...values }))),
  );
  return sql`select * from unnest(${index}::integer[], ${column((i) => i.providerId)}::integer[],
    ${column((i) => i.classId)}::integer[], ${column((i) => i.total)}::integer[], ${column((i) => i.reserved)}::integer[],
    ${column((i) => i.minUnit)}::integer[], ${column((i) => i.maxUnit)}::integer[], ${column((i) => i.stepSize)}::integer[],
    ${column((i) => i.allocationRatio)}::float8[]
    ) as i (claim, provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)`;
}

/** Table `inventory_to_remove`: the inventories to delete. */
export function inventoriesToRemove(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ inventories }) =>
    inventories.flatMap(({ providerId, remove }) => remove.map((classId) => ({ providerId, classId }))),
  );
  return sql`select * from unnest(${index}::integer[], ${column((i) => i.providerId)}::integer[],
    ${column((i) => i.classId)}::integer[]) as r (claim, provider_id, class_id)`;
}

/** Rows (claim, provider_id): the providers that claims by query relied on. */
export function reliedProviders(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ reliedOn }) => reliedOn ?? []);
  return sql`select * from unnest(${index}::integer[], ${column((id) => id)}::integer[]) as r (claim, provider_id)`;
}

/**
 * Rows (claim, uuid, generation, record_id, provider_ids): the consumers that claims by query name; the ids of their providers are one
 * text.
 */
export function namedByAffinity(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const { index, column } = numbered(claims, ({ affinity }) => affinity ?? []);
  // In the order of texts, as string_agg has them.
  const texts = column(({ providerIds }) => [...providerIds].map(String).sort().join(','));
  return sql`select * from unnest(${index}::integer[], ${column(({ uuid }) => uuid)}::text[],
    ${column(({ generation }) => generation)}::integer[], ${column(({ recordId }) => recordId)}::integer[], ${texts}::text[]
    ) as n (claim, uuid, generation, record_id, provider_ids)`;
}

/*
 * Parts of the statement that writes claims: the terms and the names that claims set for consumers. Most batches have none, and their
 * statement lacks these parts.
 */

/** The parts of the statement, and the statements after it in the same transaction. */
type ConsumerParts = {
  /** The `returning` of the part that makes the records of new consumers. */
  readonly returning: RawBuilder<unknown>;
  /** The tables `termed`, with the terms of the claims, and `named` and `unnamed`. */
  readonly written: RawBuilder<unknown>;
  /** Columns of the result: when the terms expire, by the UUIDs of the consumers, in milliseconds since 1970. */
  readonly columns: RawBuilder<unknown>;
  readonly after: readonly RawBuilder<unknown>[];
};

/** @param known whether the statement has the table `updated` */
export function termAndNameParts(consumers: readonly ConsumerWrite[], known: boolean): ConsumerParts {
  const terms = consumers.flatMap(({ uuid, term }) => (typeof term === 'object' ? [{ uuid, ...term }] : []));
  const carries = known && consumers.some(({ term }) => term === 'carried over');
  const named = consumers.flatMap(({ uuid, name }) => (typeof name === 'string' ? [{ uuid, name }] : []));
  // A new consumer has no name yet.
  const unnamed = consumers.flatMap(({ uuid, name, generation }) => (name === null && generation !== null ? uuid : []));
  const written = [
    ...(terms.length === 0 ? [] : [writtenTerms(terms)]),
    ...(named.length === 0 ? [] : [writtenNames(named)]),
    ...(unnamed.length === 0 ? [] : [removedNames(unnamed)]),
  ];
  return {
    returning: written.length === 0 && !carries ? sql`` : sql`returning id, uuid, generation`,
    written:
      written.length === 0
        ? sql``
        : sql`,
    recorded as (select * from created ${known ? sql`union all select * from updated` : sql``}),
    ${sql.join(
      written,
      sql`,
    `,
    )}`,
    columns: sql`${terms.length === 0 ? sql`` : termColumn} ${carries ? sql`, ${noteRewritten(carriedOver(consumers))}` : sql``}`,
    after: carries ? [carryTermsOver] : [],
  };
}

/** A term begins when its row is written. At that time the record of the consumer is already locked. */
const writtenTerms = (
  terms: readonly { readonly uuid: string; readonly seconds: number }[],
): RawBuilder<unknown> => sql`termed as (
      insert into consumer_terms (consumer_id, generation, expires_at)
      select id, generation, clock_timestamp() + make_interval(secs => seconds)
      from recorded join unnest(${terms.map(({ uuid }) => uuid)}::text[], ${terms.map(({ seconds }) => seconds)}::integer[]
      ) as g (uuid, seconds) using (uuid)
      order by id
      on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at
      returning consumer_id, expires_at
    )`;

/** A name that the consumer has already is not written again. */
const writtenNames = (
  named: readonly { readonly uuid: string; readonly name: string }[],
): RawBuilder<unknown> => sql`named as (
      insert into consumer_names as former (consumer_id, name)
      select id, name from recorded join unnest(${named.map(({ uuid }) => uuid)}::text[], ${named.map(({ name }) => name)}::text[]
      ) as n (uuid, name) using (uuid)
      order by id
      on conflict (consumer_id) do update set name = excluded.name where former.name <> excluded.name
    )`;

const removedNames = (uuids: readonly string[]): RawBuilder<unknown> => sql`unnamed as (
      delete from consumer_names where consumer_id = any(array(select id from recorded where uuid = any(${uuids}::text[])))
    )`;

const termColumn = sql`, (
      select json_object_agg(uuid, (extract(epoch from expires_at) * 1000)::float8) from termed join recorded on id = consumer_id
    ) as "expiresAtMs"`;

const carriedOver = (consumers: readonly ConsumerWrite[]): RawBuilder<unknown> => {
  const uuids = consumers.filter(({ term }) => term === 'carried over').map(({ uuid }) => uuid);
  return sql`updated where uuid = any(${uuids}::text[])`;
};
