import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';

/** An owner of consumers of a claim that waits. */
export type WaitingOwner = { readonly projectId: string; readonly userId: string };

/** What a claim that waits is stored with. */
export type WaitingClaim = {
  /** The hash of its project and its consumers, which identifies the claim. */
  readonly claim: string;
  readonly consumers: readonly string[];
  /** The name that it gives to each consumer, or null; null if it gives none. */
  readonly names: readonly (string | null)[] | null;
  readonly projectId: string;
  readonly userId: string;
  /** The owners of its other consumers, as far as they are not this one. */
  readonly otherOwners: readonly WaitingOwner[];
  /** The line of the project in which it waits; null without one. */
  readonly line: string | null;
  /** How long the claim has waited, and still may wait. */
  readonly waitedMs: number;
  readonly waitMs: number;
  /** When its request came, by the clock of the database, in whole milliseconds since 1970. Computed once, for all processes. */
  readonly askedAtMs: number;
  readonly waitsFor: 'room' | 'limit';
  /** Why the claim was refused; empty where it was not judged yet. */
  readonly condition: string;
};

/** A claim that was stored, and got its number among the waiting claims. */
export type EnteredClaim = {
  readonly claim: string;
  /** Numbers of one line are in the order in which the claims came. */
  readonly number: number;
  /** How long it has waited, with earlier requests for the same. */
  readonly waitedMs: number;
  /** Whether no claim that came before, with an earlier statement, waits in its line. */
  readonly isFirst: boolean;
};

/** The lock of a line, or of a claim without one; its second key is the hash of what is locked. */
const lineLock = 1_490_000;

/** A claim, and the line of its project; null without one. */
type Lined = Pick<WaitingClaim, 'claim' | 'projectId' | 'line'>;

/**
 * Locks the lines of claims, and claims without one, in the order of their keys. It runs before the statement that reads or writes the rows
 * of these claims.
 */
export const lockLines = (claims: readonly Lined[]): readonly RawBuilder<unknown>[] => {
  const names = [
    ...new Set(claims.map(({ claim, projectId, line }) => (line === null ? claim : `${projectId} ${line}`))),
  ];
  if (names.length === 0) return [];
  return [
    sql`select pg_advisory_xact_lock(${sql.lit(lineLock)}, key)
      from (select distinct hashtext(name) as key from unnest(${names}::text[]) as name order by 1 offset 0) as keys`,
  ];
};

/** If a process has not noted for this long that it is alive, lines do not wait for its claims. */
const silent = sql`interval '5 seconds'`;
/**
 * How long after its connection ended a claim can have its number back: a service may take most of this time to start again. Other claims
 * do not wait for it.
 */
const kept = sql`interval '60 seconds'`;
/** A row whose time has been over for this long does not belong to a claim any more. */
const overdue = sql`interval '10 seconds'`;
/** For this long after its process was heard of last. */
const keptOfProcess = sql`interval '65 seconds'`;

const wasHeard = (process: RawBuilder<unknown>, age: RawBuilder<unknown>): RawBuilder<boolean> =>
  sql`exists (select from waiting_processes p where p.id = ${process} and p.seen_at > clock_timestamp() - ${age})`;

/** Whether row `w` is of a claim that still waits. */
const stillWaits = sql`w.left_at is null and not w.is_removed and w.until > clock_timestamp() - ${overdue}
      and ${wasHeard(sql`w.process`, silent)}`;

/** Whether no older request may take row `w`: its request waits, or has ended or left within the time for which rows are kept. */
const refusesOlder = sql`(w.left_at is null and w.is_removed or ${stillWaits} or w.left_at > clock_timestamp() - ${kept})`;

/** Whether an earlier claim of the same line still waits. */
const hasEarlier = (
  projectId: RawBuilder<unknown>,
  line: RawBuilder<unknown>,
  number: RawBuilder<unknown>,
): RawBuilder<boolean> =>
  sql`exists (select from waiting w where w.project_id = ${projectId} and w.line = ${line} and w.number < ${number} and ${stillWaits})`;

const heard = (process: string): RawBuilder<unknown> => sql`
  insert into waiting_processes (id, seen_at) values (${process}::uuid, clock_timestamp())
  on conflict (id) do update set seen_at = excluded.seen_at`;

const inMs = (time: RawBuilder<unknown>): RawBuilder<number> => sql`(extract(epoch from ${time}) * 1000)::float8`;

/** A list of texts in JSON as an array; null for null. */
const textsOf = (json: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`case when ${json} is not null then array(select json_array_elements_text(${json}::json)) end`;

const others = ({ otherOwners }: WaitingClaim, key: keyof WaitingOwner): string | null =>
  otherOwners.length === 0 ? null : JSON.stringify(otherOwners.map((owner) => owner[key]));

const newRows = (process: string, claims: readonly WaitingClaim[]): RawBuilder<unknown> => {
  const column = (of: (claim: WaitingClaim) => unknown): readonly unknown[] => claims.map(of);
  return sql`
      insert into waiting as w (claim, consumers, names, project_id, user_id, other_projects, other_users, line, process, since, until, asked_at, waits_for, condition)
      select claim, string_to_array(consumers, ','), ${textsOf(sql`names`)}, project_id, user_id,
        ${textsOf(sql`other_projects`)}, ${textsOf(sql`other_users`)}, line, ${process}::uuid,
        clock_timestamp() - make_interval(secs => waited_ms / 1000), clock_timestamp() + make_interval(secs => wait_ms / 1000),
        to_timestamp(asked_at_ms / 1000), waits_for, condition
      from unnest(${column((c) => c.claim)}::text[], ${column((c) => c.consumers.join(','))}::text[], ${column((c) => c.names && JSON.stringify(c.names))}::text[],
        ${column((c) => c.projectId)}::text[], ${column((c) => c.userId)}::text[],
        ${column((c) => others(c, 'projectId'))}::text[], ${column((c) => others(c, 'userId'))}::text[], ${column((c) => c.line)}::text[],
        ${column((c) => c.waitedMs)}::float8[], ${column((c) => c.waitMs)}::float8[], ${column((c) => c.askedAtMs)}::float8[],
        ${column((c) => c.waitsFor)}::text[], ${column((c) => c.condition)}::text[]
      ) with ordinality as e (claim, consumers, names, project_id, user_id, other_projects, other_users, line, waited_ms, wait_ms, asked_at_ms, waits_for, condition, index)
      order by index`;
};

/**
 * Stores claims that wait, and assigns their numbers. If a claim with the same consumers came before, for the same project and line, the
 * later claim gets its number; if the earlier claim still waits in another process, that process reads of it (`fetchWaitingNews`).
 * A request that is stored again after DELETE /waiting has ended its wait stays ended, and its process reads that.
 *
 * @returns the claims that were stored: all except those for which a later request came to another process
 */
export async function enterWaiting(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  claims: readonly WaitingClaim[],
): Promise<readonly EnteredClaim[]> {
  const isKept = sql`(w.project_id = excluded.project_id and w.line is not distinct from excluded.line and not w.is_removed
      and case when w.left_at is null then ${wasHeard(sql`w.process`, keptOfProcess)} else w.left_at > clock_timestamp() - ${kept} end)`;
  const statement = sql<EnteredClaim>`
    with entered as (
      ${newRows(process, claims)}
      on conflict (claim) do update set
        number = case when ${isKept} then w.number else excluded.number end,
        since = case when ${isKept} then w.since else excluded.since end,
        former_process = case when w.process = excluded.process then w.former_process when w.left_at is null then w.process end,
        consumers = excluded.consumers, names = excluded.names, project_id = excluded.project_id, user_id = excluded.user_id,
        other_projects = excluded.other_projects, other_users = excluded.other_users, line = excluded.line,
        process = excluded.process, until = excluded.until, asked_at = excluded.asked_at, waits_for = excluded.waits_for, condition = excluded.condition,
        left_at = null, is_removed = w.is_removed and w.asked_at = excluded.asked_at
      where w.process = excluded.process or w.asked_at <= excluded.asked_at or not ${refusesOlder}
      returning claim, number, since, project_id, line
    )
    select claim, number::float8 as number, ${inMs(sql`clock_timestamp() - since`)} as "waitedMs",
      line is null or not ${hasEarlier(sql`entered.project_id`, sql`entered.line`, sql`entered.number`)} as "isFirst"
    from entered`;
  const before = lockLines(claims.filter(({ line }) => line !== null));
  const results = await transaction([...before, heard(process), statement]);
  return (results[before.length + 1] ?? []) as readonly EnteredClaim[]; // the rows of `statement`
}

/** Stores claims that have left before they were stored, unless the same claims were requested again. */
export async function keepNumbers(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  claims: readonly WaitingClaim[],
): Promise<void> {
  await transaction([heard(process), sql`${newRows(process, claims)} on conflict (claim) do nothing`]);
}

/** How a claim has left: `ended` was answered; the number of a claim that has `left` is kept for a while. */
export type LeavingClaim = { readonly claim: string; readonly how: 'ended' | 'left' };

/**
 * Removes claims from the waiting ones, unless another process has taken them over. If a row was taken from a process that has not
 * read of it yet, the row is kept for a while, so that the older request is refused. Such rows are found first, because that process may
 * read of it meanwhile.
 */
export async function leaveWaiting(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  claims: readonly LeavingClaim[],
): Promise<void> {
  const of = (wanted: LeavingClaim['how']) => claims.filter(({ how }) => how === wanted).map(({ claim }) => claim);
  await transaction([
    sql`with own as materialized (
        select claim, former_process is null as is_notified from waiting where claim = any(${of('ended')}::text[]) and process = ${process}::uuid
      ),
      ended as (
        delete from waiting where claim in (select claim from own where is_notified) and process = ${process}::uuid and former_process is null
      )
      update waiting set left_at = clock_timestamp(), is_removed = is_removed or claim = any(${of('ended')}::text[])
      where process = ${process}::uuid
        and (claim = any(${of('left')}::text[]) or claim in (select claim from own where not is_notified))`,
  ]);
}

/** Updates the stored descriptions of claims that wait, and the ends of their times: a later request of this process may have taken the row. */
export async function describeWaiting(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  claims: readonly Pick<WaitingClaim, 'claim' | 'waitMs' | 'waitsFor' | 'condition'>[],
): Promise<void> {
  await transaction([
    sql`update waiting w set waits_for = d.waits_for, condition = d.condition,
        until = clock_timestamp() + make_interval(secs => d.wait_ms / 1000)
      from unnest(${claims.map(({ claim }) => claim)}::text[], ${claims.map(({ waitMs }) => waitMs)}::float8[],
        ${claims.map(({ waitsFor }) => waitsFor)}::text[], ${claims.map(({ condition }) => condition)}::text[]
      ) as d (claim, wait_ms, waits_for, condition)
      where w.claim = d.claim and w.process = ${process}::uuid`,
  ]);
}

/** What has happened to a claim of a process. */
export type WaitingNews = {
  readonly claim: string;
  /**
   * Of a claim of `firsts`, `first`: no claim of its line is before it; `in line`: a claim of this process is before it;
   * `elsewhere`: a claim of another process is. `gone`: its row does not exist any more, or was ended. `taken over`: another process has
   * stored a request for the same consumers in its row. `removed`: by DELETE /waiting.
   */
  readonly what: 'first' | 'in line' | 'elsewhere' | 'gone' | 'taken over' | 'removed';
  /**
   * When the request came that has taken the row over, or whose row DELETE /waiting has ended, by the clock of the database, in milliseconds
   * since 1970; null otherwise.
   */
  readonly askedAtMs: number | null;
};

/** Notes that a process is alive. @returns how many rows are of its claims */
export async function noteAlive({ transaction }: Pick<Database, 'transaction'>, process: string): Promise<number> {
  const [, [counted]] = await transaction([
    heard(process),
    sql<{
      rows: number;
    }>`select count(*)::integer as rows from waiting where process = ${process}::uuid and left_at is null`,
  ]);
  return counted?.rows ?? 0;
}

/** A claim that has no row of its process any more that still waits. */
export type LostRow = {
  readonly claim: string;
  /** When the request came whose row DELETE /waiting has ended, in milliseconds since 1970; null where the row is gone, or left by its client. */
  readonly endedAskedAtMs: number | null;
};

/** Finds which of some claims have no row of the process any more that still waits. */
export async function lostRows(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  claims: readonly string[],
): Promise<readonly LostRow[]> {
  const [lost] = await transaction([
    sql<LostRow>`
      select c.claim, case when w.is_removed then ${inMs(sql`w.asked_at`)} end as "endedAskedAtMs"
      from unnest(${claims}::text[]) as c (claim) left join waiting w on w.claim = c.claim and w.process = ${process}::uuid
      where w.claim is null or w.left_at is not null`,
  ]);
  return lost;
}

/**
 * Reads what has happened to the claims of a process. `taken over` and `removed` are returned once: if the answer is lost, a claim of
 * `firsts` is found `gone` next, and `lostRows` finds the others.
 *
 * @param firsts in each line the first claim of the process
 */
export async function fetchWaitingNews(
  { transaction }: Pick<Database, 'transaction'>,
  process: string,
  firsts: readonly string[],
): Promise<readonly WaitingNews[]> {
  const [news] = await transaction([
    sql<WaitingNews>`
      with taken as (
        update waiting set former_process = null where former_process = ${process}::uuid returning claim, asked_at
      ),
      removed as (
        update waiting set left_at = clock_timestamp() where process = ${process}::uuid and is_removed and left_at is null
        returning claim, asked_at
      )
      select claim, 'taken over' as what, ${inMs(sql`asked_at`)} as "askedAtMs" from taken
      union all
      select claim, 'removed', ${inMs(sql`asked_at`)} from removed
      union all
      select f.claim, case when o.claim is null or o.is_removed then 'gone' when e.process is null then 'first'
        when e.process = o.process then 'in line' else 'elsewhere' end, case when o.is_removed then ${inMs(sql`o.asked_at`)} end
      from unnest(${firsts}::text[]) as f (claim)
      left join waiting o on o.claim = f.claim and o.process = ${process}::uuid and (o.left_at is null or o.is_removed)
      left join lateral (
        select w.process from waiting w where w.project_id = o.project_id and w.line = o.line and w.number < o.number and ${stillWaits}
        order by w.number limit 1
      ) as e on true`,
  ]);
  return news;
}

/** Deletes claims whose number is not reserved any more, and processes that have ended. */
export async function forgetWaiting({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  await transaction([
    sql`delete from waiting w
      where case when w.left_at is null then not ${wasHeard(sql`w.process`, keptOfProcess)} else w.left_at <= clock_timestamp() - ${kept} end`,
    sql`delete from waiting_processes where seen_at < clock_timestamp() - interval '1 hour'`,
  ]);
}

/** The row of a claim that waits, or may wait. */
export type WaitingRow = Lined & {
  readonly process: string;
  /** Whether the claim must have this row: then it must still wait, and be the first one of its line if it has one. */
  readonly isStored: boolean;
};

/** Claims, by their indexes in a batch, that wait no more, or are not the first ones of their lines. */
export function lostWaiting(rows: readonly (WaitingRow & { readonly index: number })[]): RawBuilder<unknown> {
  if (rows.length === 0) return sql``;
  return sql`
      union all
      select t.index, 'line' from unnest(${rows.map(({ index }) => index)}::integer[], ${rows.map(({ claim }) => claim)}::text[],
        ${rows.map(({ process }) => process)}::uuid[]) as t (index, claim, process)
      left join waiting o on o.claim = t.claim and o.process = t.process and o.left_at is null and not o.is_removed
      where o.claim is null or ${hasEarlier(sql`o.project_id`, sql`o.line`, sql`o.number`)}`;
}

/**
 * Removes claims that are written from their lines, as `leaveWaiting` does; also earlier requests for the same claims that wait at other
 * processes.
 *
 * @param lost the indexes of the claims that are not written, as an array
 */
export const endedWaiting = (
  rows: readonly (WaitingRow & { readonly index: number })[],
  lost: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`
    written_turn as (
      select t.claim, t.process from unnest(${rows.map(({ index }) => index)}::integer[], ${rows.map(({ claim }) => claim)}::text[],
        ${rows.map(({ process }) => process)}::uuid[]) as t (index, claim, process)
      where t.index <> all(${lost})
    ),
    present_turn as materialized (
      select t.*, w.process = t.process and w.former_process is null as is_notified
      from written_turn t join waiting w on w.claim = t.claim where w.left_at is null
    ),
    ended_turn as (
      delete from waiting where claim in (select claim from present_turn where is_notified) and former_process is null
    ),
    kept_turn as (
      update waiting w set left_at = clock_timestamp(), is_removed = true, asked_at = now(), process = t.process,
        former_process = case when w.process = t.process then w.former_process else w.process end
      from present_turn t where w.claim = t.claim and not t.is_notified
    )`;

/** A claim that waits, as GET /waiting shows it. */
export type ListedWaiting = {
  readonly number: number;
  readonly consumers: readonly string[];
  /** The name that it gives to each consumer, or null; null if it gives none. */
  readonly names: readonly (string | null)[] | null;
  readonly projectId: string;
  readonly userId: string;
  readonly since: Date;
  readonly until: Date;
  readonly line: string | null;
  /** From 1 on: in its line, or without one in its process. */
  readonly place: number;
  readonly waitsFor: 'room' | 'limit' | 'line';
  readonly condition: string;
};

/** The filter of GET /waiting. */
export type WaitingSelection = {
  /** A project of one of its consumers. */
  readonly projectId: string | undefined;
  /** Whether all its consumers must be of this project. */
  readonly isOnlyOfProject: boolean;
  readonly line: string | undefined;
  /** The number after which the page begins. */
  readonly after: number;
  readonly limit: number;
};

/** The claims that wait, of all processes, by their numbers. */
export async function listWaiting(
  { kysely }: Pick<Database, 'kysely'>,
  {
    projectId = null,
    isOnlyOfProject,
    line = null,
    after,
    limit,
  }: { [Key in keyof WaitingSelection]: WaitingSelection[Key] | null },
): Promise<readonly ListedWaiting[]> {
  const { rows } = await sql<ListedWaiting>`
    with placed as (
      select w.*, row_number() over (
        partition by case when w.line is null then w.process end, case when w.line is not null then w.project_id end, w.line
        order by case when w.line is null then w.since end, w.number
      )::integer as place
      from waiting w where ${stillWaits}
    )
    select number::float8 as number, consumers, names, project_id as "projectId", user_id as "userId", since, until, line, place,
      case when line is not null and place > 1 then 'line' else waits_for end as "waitsFor", condition
    from placed
    where number > ${after} and (${projectId}::text is null or project_id = ${projectId} or ${projectId} = any(other_projects))
      and (not ${isOnlyOfProject}::boolean or other_projects is null or project_id = ${projectId} and ${projectId} = all(other_projects))
      and (${line}::text is null or line = ${line})
    order by number limit ${limit}`.execute(kysely);
  return rows;
}

/** The claims of a consumer that wait, each with the owners of all its consumers. @param spellings of its UUID */
export async function waitingOf(
  { kysely }: Pick<Database, 'kysely'>,
  spellings: readonly string[],
): Promise<readonly (Lined & { readonly owners: readonly WaitingOwner[] })[]> {
  const { rows } = await sql<Lined & { userId: string; otherProjects: string[] | null; otherUsers: string[] | null }>`
    select claim, project_id as "projectId", user_id as "userId", line, other_projects as "otherProjects", other_users as "otherUsers"
    from waiting w where consumers && ${spellings}::text[] and ${stillWaits}`.execute(kysely);
  return rows.map(({ userId, otherProjects, otherUsers, ...claim }) => {
    const others = (otherProjects ?? []).map((projectId, index) => ({ projectId, userId: otherUsers?.[index] ?? '' }));
    return { ...claim, owners: [{ projectId: claim.projectId, userId }, ...others] };
  });
}

/** Ends the wait of claims, unless they were written meanwhile; their processes read of it. @returns how many still waited */
export async function removeWaiting({ write }: Pick<Database, 'write'>, claims: readonly Lined[]): Promise<number> {
  const before = lockLines(claims);
  const results = await write([
    ...before,
    sql`update waiting w set is_removed = true where claim = any(${claims.map(({ claim }) => claim)}::text[]) and ${stillWaits}
      returning claim`,
  ]);
  return results[before.length]?.length ?? 0;
}
