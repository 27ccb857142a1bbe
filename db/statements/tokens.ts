import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { utcNow } from '../engine/time.ts';

/** A token that this service has made, without its text, of which only the hash is stored. */
export type TokenRow = {
  readonly uuid: string;
  /** How the token begins. */
  readonly prefix: string;
  readonly userId: string;
  readonly projectId: string;
  readonly roles: readonly string[];
  readonly created: Date;
  /** Null for a token that never expires. */
  readonly expires: Date | null;
  /** The hour in which it was used last; null if it never was. */
  readonly used: Date | null;
};

/** The fields of a new token. */
export type NewToken = Pick<TokenRow, 'uuid' | 'prefix' | 'userId' | 'projectId' | 'roles'> & {
  /** The SHA-256 of the token, as hexadecimal digits. */
  readonly hash: string;
  /** How long it is valid, by the clock of the database; undefined for always. */
  readonly seconds: number | undefined;
};

const columns = sql`uuid, prefix, user_id as "userId", project_id as "projectId", roles, created_at as created,
  expires_at as expires, used_at as used`;

/** Stores a new token, and removes tokens that expired long ago: otherwise the table would keep every token for ever. */
export async function createToken({ write }: Pick<Database, 'write'>, token: NewToken): Promise<TokenRow> {
  const { uuid, hash, prefix, userId, projectId, roles, seconds = null } = token;
  const [, [row]] = await write([
    sql`delete from tokens where expires_at < ${utcNow} - interval '30 days'`,
    sql<TokenRow>`insert into tokens (uuid, hash, prefix, user_id, project_id, roles, created_at, expires_at)
      values (${uuid}, ${hash}, ${prefix}, ${userId}, ${projectId}, ${roles}::text[], ${utcNow},
        ${utcNow} + make_interval(secs => ${seconds}::float8))
      returning ${columns}`,
  ]);
  if (row === undefined) throw new Error('The new token was not returned.');
  return row;
}

/** A token that was found by its hash. */
export type FoundToken = Pick<TokenRow, 'uuid' | 'userId' | 'projectId' | 'roles'> & {
  /** For how many milliseconds it is still valid, by the clock of the database; null for always. */
  readonly msLeft: number | null;
  /** Whether the token was last used in the present hour. */
  readonly isNoted: boolean;
};

/** The token with this hash that has not expired; undefined if there is none. */
export async function findToken({ kysely }: Pick<Database, 'kysely'>, hash: string): Promise<FoundToken | undefined> {
  const { rows } = await sql<FoundToken>`
    select uuid, user_id as "userId", project_id as "projectId", roles, ((extract(epoch from expires_at) - extract(epoch from ${utcNow})) * 1000)::float8 as "msLeft",
      coalesce(used_at >= date_trunc('hour', ${utcNow}), false) as "isNoted"
    from tokens where hash = ${hash} and (expires_at is null or expires_at > ${utcNow})`.execute(kysely);
  return rows[0];
}

/** Notes the hour in which a token was used. */
export async function noteTokenUse({ write }: Pick<Database, 'write'>, uuid: string): Promise<void> {
  await write([
    sql`update tokens set used_at = date_trunc('hour', ${utcNow})
      where uuid = ${uuid} and (used_at is null or used_at < date_trunc('hour', ${utcNow}))`,
  ]);
}

/** Which tokens are listed. */
export type TokenQuery = {
  readonly projectId?: string | undefined;
  readonly userId?: string | undefined;
  /** Only tokens with larger UUIDs. */
  readonly marker?: string | undefined;
  readonly limit: number;
};

/** Tokens in the order of their UUIDs, also expired ones: one more than `limit` if there are more. */
export async function listTokens(
  { kysely }: Pick<Database, 'kysely'>,
  { projectId, userId, marker = '', limit }: TokenQuery,
): Promise<readonly TokenRow[]> {
  const { rows } = await sql<TokenRow>`
    select ${columns} from tokens
    where uuid > ${marker} and (${projectId ?? null}::text is null or project_id = ${projectId ?? null})
      and (${userId ?? null}::text is null or user_id = ${userId ?? null})
    order by uuid limit ${limit + 1}`.execute(kysely);
  return rows;
}

/** Deletes a token. @returns whether there was one */
export async function deleteToken({ write }: Pick<Database, 'write'>, uuid: string): Promise<boolean> {
  const [rows] = await write([sql`delete from tokens where uuid = ${uuid} returning uuid`]);
  return rows.length > 0;
}
