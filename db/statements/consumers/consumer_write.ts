import { type RawBuilder, sql } from 'kysely';

/** The new owner and type of a consumer; null for no type. */
export type ConsumerOwner = {
  readonly projectId: string;
  readonly userId: string;
  readonly consumerType: string | null;
};

/** A consumer record as it was written. */
export type WrittenRecord = {
  readonly generation: number;
  readonly created: Date | null;
  readonly updated: Date | null;
  /** Null if the consumer has no allocations. */
  readonly etag: string | null;
  /** When its term ends; null if it lasts. */
  readonly expires: Date | null;
};

/**
 * The outcome of a write: `no owner` if the project, the user or the type does not exist, `changed` if a guard failed.
 */
export type ConsumerWritten = WrittenRecord | 'no owner' | 'changed';

/** Table `owner`: one row with the ids of these names; null for a name that does not exist. */
export const ownerIds = ({ projectId, userId, consumerType }: ConsumerOwner): RawBuilder<unknown> => sql`
    owner as materialized (
      select project_id, user_id, type_id, project_id is not null and user_id is not null and (named is null or type_id is not null) as exists
      from (select (select id from projects where external_id = ${projectId}) as project_id,
        (select id from users where external_id = ${userId}) as user_id,
        (select id from consumer_types where name = ${consumerType}::text) as type_id, ${consumerType}::text as named
      ) as ids
    )`;

/**
 * The columns to return of a written record `c`. A trigger writes its tag, unless the record is an old one whose
 * content did not change.
 */
export const writtenColumns = sql`c.generation, c.created_at as created, c.updated_at as updated,
        coalesce(c.etag, etag_of_allocations(c)) as etag`;

/** The row of a statement that ends with `selectOutcome`. */
export type OutcomeRow = { readonly hasOwner: boolean } & {
  readonly [Name in Exclude<keyof WrittenRecord, 'expires'>]: WrittenRecord[Name] | null;
};

/**
 * Ends a statement: selects the one row of `owner`, with the record in the table `written` if there is one.
 *
 * @param more further columns
 */
export const selectOutcome = (more: RawBuilder<unknown> = sql``): RawBuilder<unknown> =>
  sql`select owner.exists as "hasOwner", written.* ${more} from owner left join written on true`;

/** The outcome of such a statement, by its row and the end of the term that was carried over, if there was one. */
export function outcomeOf(
  [row]: readonly OutcomeRow[],
  [term]: readonly Pick<WrittenRecord, 'expires'>[] = [],
): ConsumerWritten {
  if (row === undefined || !row.hasOwner) return 'no owner';
  const { generation, created, updated, etag } = row;
  return generation === null ? 'changed' : { generation, created, updated, etag, expires: term?.expires ?? null };
}
