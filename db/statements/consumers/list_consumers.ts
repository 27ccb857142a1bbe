import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { changedNodes, type JudgedNode } from '../providers/judged_provider.ts';
import { type ConsumerRow, selectConsumerRows } from './consumer_row.ts';

/** The filter of a list of consumers; all conditions must hold. */
export type ConsumerQuery = {
  readonly projectId: string | undefined;
  readonly userId: string | undefined;
  /** `unknown` selects consumers without a type. */
  readonly consumerType: string | undefined;
  /**
   * Lists of ids: the consumers must have an allocation on a provider of each list. All allocations on the providers of the
   * first list are read.
   */
  readonly providers: readonly (readonly number[])[];
  /** The consumers must have allocations, of the class with this id if there is one. Undefined selects also consumers without any. */
  readonly holding?: { readonly classId: number | undefined } | undefined;
  /** The consumers must have this name. */
  readonly name: string | undefined;
  /** The consumers must have a name with this text in it; the letters A to Z are the same as a to z. */
  readonly namePart: string | undefined;
  /** The consumers must have a term that expires before this time. */
  readonly expiringBefore: Date | undefined;
  /** The page begins after this UUID, which need not exist. */
  readonly marker: string | undefined;
  /** How many consumers the page may have. */
  readonly limit: number;
  /** The project and user that old allocations without a consumer record belong to. */
  readonly incomplete: { readonly projectId: string; readonly userId: string };
};

/**
 * The LIMITs of the statement. There are few, since every connection plans each text; rows beyond the page are dropped
 * afterwards.
 */
const lengths: readonly number[] = [10, 100, 1000];

/**
 * A page of consumers in the order of their UUIDs, both those with a record and those with old allocations only. One
 * statement reads both, so that a consumer that gets its record meanwhile is in the page once.
 *
 * @returns one consumer more than `limit`, if there are more
 */
export async function listConsumers({ kysely }: Database, query: ConsumerQuery): Promise<readonly ConsumerRow[]> {
  const { rows } = await sql<ConsumerRow>`with ${pageOf(query)}
    ${selectConsumerRows(sql`page as c`)} order by c.uuid`.execute(kysely);
  return rows.slice(0, query.limit + 1);
}

/**
 * As `listConsumers`, where the providers of the query were found by the shape of a tree.
 *
 * @param tree all providers of the tree, as they were when the providers of the query were found
 * @returns `changed` if the tree has another shape in the snapshot that the page is of
 */
export async function listConsumersOfTree(
  { kysely }: Database,
  query: ConsumerQuery,
  tree: readonly JudgedNode[],
): Promise<readonly ConsumerRow[] | 'changed'> {
  type Listed = { readonly isChanged: boolean } & (ConsumerRow | { readonly uuid: null });
  const { rows } = await sql<Listed>`with ${changedNodes(tree)}, ${pageOf(query)},
    listed as (${selectConsumerRows(sql`page as c`)})
    select shape.*, listed.* from (select exists (select from changed) as "isChanged") as shape left join listed on true
    order by listed.uuid`.execute(kysely);
  if (rows.some(({ isChanged }) => isChanged)) return 'changed';
  return rows.flatMap((row) => (row.uuid === null ? [] : row)).slice(0, query.limit + 1);
}

/** Table `page`: the consumers of the page, with the columns of `consumers`, and at least one more if there are more. */
export function pageOf(query: ConsumerQuery): RawBuilder<unknown> {
  const { limit, marker = '' } = query;
  const length = sql.lit((lengths.find((each) => each >= limit) ?? limit) + 1);
  if (query.providers.length > 0) return onProviders(query, marker, length);
  if (query.name !== undefined) return withIds(idsOfName(query.name), query, marker, length);
  if (query.expiringBefore !== undefined) return withIds(idsOfTerms(query.expiringBefore), query, marker, length);
  return anywhere(query, marker, length);
}

const columns = sql`c.id, c.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag`;

/**
 * Finds the records of the page, and old allocations without one. Records of a project are found by an index that has the
 * UUIDs in order. No index has the records of a user or of a type in this order, since it would make every claim slower.
 */
function anywhere(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const { project, user } = ownerConditions(query);
  const types = typeConditions(query);
  const { holding } = query;
  const held = holding === undefined ? [] : [holds(holding.classId)];
  const byClass = holding?.classId === undefined ? [] : [sourceOfClass(holding.classId)];
  const byNamePart = query.namePart === undefined ? [] : [sourceOfNamePart(query.namePart)];
  const isSearched = [...held, ...namePartConditions(query)];
  const recorded = (types.length === 0 ? [undefined] : types).map((type) => {
    if (project !== undefined) {
      const [last, before] = user === undefined ? [project, []] : [user, [equal(project)]];
      const further = [...before, ...(type === undefined ? [] : [equal(type)]), ...isSearched];
      const all = ofProject(last, further, marker, length);
      const matches = [project, ...(user === undefined ? [] : [user]), ...(type === undefined ? [] : [type])].map(
        equal,
      );
      // The part of a name does not choose the source: the count would read names of other projects, and its time would reveal them.
      return byClass.length === 0
        ? sql`(${all(sql`true`)})`
        : fewOrMany(byClass, { matches: [...matches, ...isSearched], all }, marker, length);
    }
    const sources = [
      ...(user === undefined ? [] : [{ condition: equal(user), rows: rowsOfUser(user, marker) }]),
      ...(type === undefined ? [] : [{ condition: equal(type), rows: rowsOfType(type) }]),
      ...byClass,
      ...byNamePart,
    ];
    return fewOrMany(sources, { matches: held }, marker, length);
  });
  return sql`recorded as materialized (
      select * from (${sql.join(recorded, sql` union all `)}) as found order by uuid limit ${length}
    ),
    page as materialized (
      select * from recorded ${mayBeIncomplete(query) ? incomplete(query, marker, length) : sql``}
      order by uuid limit ${length}
    )`;
}

/**
 * The page of a project, or of a user in it. The last condition before the UUID is a range, and range and order are those of the
 * rest of the index. With a plain equality there, the server may read an index of UUIDs and skip the records of other owners, which takes
 * long if most records are skipped; so it does with a range from the project on, where it expects a third of all records in it.
 */
function ofProject(
  { column, value }: ConsumerCondition,
  further: readonly RawBuilder<unknown>[],
  marker: string,
  length: RawBuilder<unknown>,
): (isSelected: RawBuilder<unknown>) => RawBuilder<unknown> {
  const range = sql`(${column}, c.uuid) > (${value}, ${marker}::text) and ${column} <= ${value}`;
  return (isSelected) =>
    sql`select ${columns} from consumers c where ${sql.join([isSelected, range, ...further], sql` and `)} order by ${column}, c.uuid limit ${length}`;
}

/** The condition that a consumer has allocations, of a class if there is one. */
const holds = (classId: number | undefined): RawBuilder<unknown> => sql`exists (
          select from allocations a where a.consumer_id = c.uuid ${ofClass(classId)} offset 0
        )`;

/** A further condition on `allocations a`. */
export const ofClass = (classId: number | undefined): RawBuilder<unknown> =>
  classId === undefined ? sql`` : sql`and a.resource_class_id = ${classId}::integer`;

/** The allocations of a class, by the index of classes. The order keeps the server from reading the whole table. */
const rowsOfClass = (classId: number) =>
  sql`(select a.consumer_id from allocations a where a.resource_class_id = ${classId}::integer order by a.resource_class_id) as a`;

/** The consumers that have something of a class. */
const sourceOfClass = (classId: number): ConsumerSource => ({
  condition: holds(classId),
  counted: rowsOfClass(classId),
  rows: sql`(select distinct a.consumer_id from ${rowsOfClass(classId)} offset 0) as h cross join lateral (select * from consumers where uuid = h.consumer_id offset 0) as c`,
});

/** `fewOrMany` counts at most this number of pages. */
const fewPages = sql.lit(50);

/** The rows that a condition selects, found without reading other rows, and not in the order of UUIDs. */
type ConsumerSource = {
  readonly condition: RawBuilder<unknown>;
  /** With the columns of `consumers c`. */
  readonly rows: RawBuilder<unknown>;
  /** The rows to count instead, where these are fewer. */
  readonly counted?: RawBuilder<unknown>;
};

/** The planner assumes that every second row meets such a condition. For an equality it assumes that few rows do. */
const likely = (condition: RawBuilder<unknown>) => sql`case when ${condition} then true else false end`;

/**
 * The page of the records that meet all conditions. If one condition selects few records, all these are read, and the
 * page is sorted. If each condition selects many records, records are read in the order of UUIDs until the page is
 * full. With one condition that reads on average a fiftieth of all records at most.
 *
 * @param others.matches further conditions
 * @param others.all the statement that reads the records in the order of UUIDs, if it is not to read all consumers
 */
function fewOrMany(
  sources: readonly ConsumerSource[],
  others: {
    readonly matches: readonly RawBuilder<unknown>[];
    readonly all?: (isSelected: RawBuilder<unknown>) => RawBuilder<unknown>;
  },
  marker: string,
  length: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const most = sql`${fewPages} * ${length}`;
  const page = (from: RawBuilder<unknown>, conditions: readonly RawBuilder<unknown>[]) => sql`
          select ${columns} from ${from} where ${sql.join([sql`c.uuid > ${marker}`, ...conditions], sql` and `)}
          order by c.uuid limit ${length}`;
  const firstWithFew = sources.map(
    ({ rows, counted = rows }, index) =>
      sql`when (select count(*) from (select from ${counted} limit ${most}) as counted) < ${most} then ${sql.lit(index)}`,
  );
  const isMatch = [...sources.map(({ condition }) => condition), ...others.matches];
  const { all = (isSelected) => page(sql`consumers c`, [isSelected, ...isMatch.map(likely)]) } = others;
  const pages = [
    ...sources.map(
      ({ rows }, index) =>
        sql`(${page(sql`(select ${columns} from ${rows} limit ${most}) as c`, [sql`few.index = ${sql.lit(index)}`, ...isMatch])})`,
    ),
    sql`(${all(sql`few.index is null`)})`,
  ];
  // Each source is counted once, however many pages depend on the count.
  const few = sources.length === 0 ? sql`null::integer` : sql`case ${sql.join(firstWithFew, sql` `)} end`;
  return sql`(
        select found.* from (select ${few} as index offset 0) as few
        cross join lateral (${sql.join(pages, sql` union all `)}) as found
      )`;
}

/**
 * The records of a user after the marker, by upstream's index of users in projects: one index search for each project.
 */
const rowsOfUser = ({ value }: ConsumerCondition, marker: string) => sql`(
          with recursive project (id) as (
            select min(project_id) from consumers
            union all
            select (select min(project_id) from consumers where project_id > project.id) from project where id is not null
          ) select id from project where id is not null
        ) as project cross join lateral (
          select c.* from consumers c
          where c.project_id = project.id and (c.user_id, c.uuid) > (${value}, ${marker}::text) and c.user_id <= ${value}
          order by c.user_id, c.uuid offset 0
        ) as c`;

/** The records of a type, by upstream's index of types. The order keeps the server from reading the whole table. */
const rowsOfType = ({ inIndex }: TypeCondition) =>
  sql`(select c.* from consumers c where ${inIndex} order by c.consumer_type_id) as c`;

/**
 * Old allocations without a record. If the page of records is full, they are searched up to its last UUID. The offset makes
 * the server look up each consumer separately, since a plan for many values would read all consumers. If the page is not
 * full and the query has a filter, both tables are read side by side in the order of UUIDs, until the page is full. Of a class that few
 * allocations have, all allocations are read.
 */
function incomplete(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const last = sql`(select uuid from recorded order by uuid offset ${length} - 1)`;
  const search = (from: RawBuilder<unknown>) => sql`
      union all (
        select null, a.consumer_id, null, null, null, null, null, null, null from ${from} as a
        order by a.consumer_id limit ${length}
      )`;
  const classId = query.holding?.classId;
  const lookedUp = (end: RawBuilder<unknown>) =>
    search(sql`(
          select consumer_id from (
            select distinct consumer_id from allocations a where consumer_id > ${marker} and consumer_id <= ${end} ${ofClass(classId)} offset 0
          ) as each where ${hasNoRecord}
        )`);
  const sideBySide = (isSelected: RawBuilder<unknown>) =>
    search(sql`(select where ${isSelected}) as is_not_full cross join lateral (
          select distinct consumer_id from allocations a
          where consumer_id > ${marker} ${ofClass(classId)} and not exists (select from consumers c where c.uuid = consumer_id)
          order by consumer_id limit ${length}
        )`);
  if (classId !== undefined) {
    const counted = sql`(select count(*) from (select from ${rowsOfClass(classId)} limit ${fewPages} * ${length}) as counted)`;
    const areFew = sql`${counted} < ${fewPages} * ${length}`;
    const ofFew = search(sql`(
          select consumer_id from (select distinct a.consumer_id from ${rowsOfClass(classId)} where ${areFew} offset 0) as each
          where consumer_id > ${marker} and ${hasNoRecord}
        )`);
    return sql`${ofFew}${lookedUp(sql`case when ${areFew} then null else ${last} end`)}${sideBySide(sql`${last} is null and not ${areFew}`)}`;
  }
  if (asksForAll(query)) return lookedUp(sql`coalesce(${last}, (select max(consumer_id) from allocations))`);
  return sql`${lookedUp(last)}${sideBySide(sql`${last} is null`)}`;
}

const hasNoRecord = sql`not exists (select from consumers c where c.uuid = each.consumer_id offset 0)`;

const asksForAll = ({ projectId, userId, consumerType }: ConsumerQuery): boolean =>
  projectId === undefined && userId === undefined && consumerType === undefined;

/** A condition on `consumer_names n`. By the letters of ASCII, so that it does not depend on where the database was made. */
const hasPart = (part: string) => sql`strpos(lower(n.name collate "C"), lower(${part}::text collate "C")) > 0`;

const isNamedWith = (part: string): RawBuilder<unknown> =>
  sql`exists (select from consumer_names n where n.consumer_id = c.id and ${hasPart(part)} offset 0)`;

/** The consumers with a text in their name: no index has it, so all names are read where few have it. */
function sourceOfNamePart(part: string): ConsumerSource {
  const named = sql`(select n.consumer_id from consumer_names n where ${hasPart(part)} offset 0) as n`;
  return {
    condition: isNamedWith(part),
    counted: named,
    rows: sql`${named} cross join lateral (select * from consumers where id = n.consumer_id offset 0) as c`,
  };
}

/** The ids of the consumers whose terms end before a time. */
const idsOfTerms = (before: Date) =>
  sql`select consumer_id from consumer_terms where expires_at < ${before}::timestamptz`;

/** The ids of the consumers with a name. */
const idsOfName = (name: string) => sql`select consumer_id from consumer_names where name = ${name}`;

/** Finds consumers by the ids of their records. All ids are read; each record is looked up separately. */
function withIds(
  ids: RawBuilder<unknown>,
  query: ConsumerQuery,
  marker: string,
  length: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`page as materialized (
      select ${columns} from (${ids}) as t (id)
      join lateral (select * from consumers where id = t.id offset 0) as c on true
      where ${matches(query)} and c.uuid > ${marker}
      order by c.uuid limit ${length}
    )`;
}

/** Finds consumers by the allocations on the providers. Their records are looked up one by one, until the page is full. */
function onProviders(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const [first = [], ...others] = query.providers;
  const alsoHas = others.map(
    (ids) => sql`exists (
        select from allocations a where a.consumer_id = h.uuid and a.resource_provider_id = any(${ids}::integer[])
      )`,
  );
  return sql`page as materialized (
      select c.id, h.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag
      from (${heldOn(first, marker, query.holding?.classId)}) as h
      left join lateral (select ${columns} from consumers c where c.uuid = h.uuid offset 0) as c on true
      where ${sql.join([matches(query), ...alsoHas], sql` and `)}
      order by h.uuid limit ${length}
    )`;
}

/** Consumers with allocations on some providers, in the order of their UUIDs. All allocations of the providers are read. */
function heldOn(ids: readonly number[], marker: string, classId: number | undefined): RawBuilder<unknown> {
  return sql`select distinct a.consumer_id as uuid from allocations a
        where a.resource_provider_id = any(${ids}::integer[]) and a.consumer_id > ${marker} ${ofClass(classId)} order by uuid offset 0`;
}

/** Whether a consumer, with a record or without one, is of the requested owner and type, and its term expires in time. */
function matches(query: ConsumerQuery): RawBuilder<unknown> {
  const types = typeConditions(query);
  const isOfType = types.length === 0 ? [] : [sql`(${sql.join(types.map(equal), sql` or `)})`];
  const conditions = [
    sql`c.id is not null`,
    ...Object.values(ownerConditions(query)).map(equal),
    ...isOfType,
    ...termConditions(query),
    ...nameConditions(query),
    ...namePartConditions(query),
  ];
  const isSelected = sql.join(conditions, sql` and `);
  return sql`((${isSelected}) ${mayBeIncomplete(query) ? sql`or c.id is null` : sql``})`;
}

/** That a column of consumers has a value. */
type ConsumerCondition = { readonly column: RawBuilder<unknown>; readonly value: RawBuilder<unknown> };

const equal = ({ column, value }: ConsumerCondition): RawBuilder<unknown> => sql`${column} = ${value}`;

/**
 * A text for each kind of query: conditions that do not apply are left out, since otherwise one plan would have to
 * serve all kinds.
 */
const ownerConditions = ({
  projectId,
  userId,
}: ConsumerQuery): { project?: ConsumerCondition; user?: ConsumerCondition } => ({
  ...(projectId === undefined
    ? {}
    : {
        project: { column: sql`c.project_id`, value: sql`(select id from projects where external_id = ${projectId})` },
      }),
  ...(userId === undefined
    ? {}
    : { user: { column: sql`c.user_id`, value: sql`(select id from users where external_id = ${userId})` } }),
});

/** A condition on the type, for any plan (`value`) and for the index of types (`inIndex`). */
type TypeCondition = ConsumerCondition & { readonly inIndex: RawBuilder<unknown> };

/** Conditions of which one must hold. The list is empty if any type matches. */
function typeConditions({ consumerType }: ConsumerQuery): TypeCondition[] {
  if (consumerType === undefined) return [];
  const column = sql`coalesce(c.consumer_type_id, 0)`;
  const id = sql`(select id from consumer_types where name = ${consumerType})`;
  const named = { column, value: id, inIndex: sql`c.consumer_type_id >= ${id} and c.consumer_type_id <= ${id}` };
  // A consumer type may also have this name.
  return consumerType === 'unknown'
    ? [{ column, value: sql`0`, inIndex: sql`c.consumer_type_id is null` }, named]
    : [named];
}

const termConditions = ({ expiringBefore }: ConsumerQuery): RawBuilder<unknown>[] =>
  expiringBefore === undefined
    ? []
    : [
        sql`exists (
          select from consumer_terms t
          where t.consumer_id = c.id and t.generation = c.generation and t.expires_at < ${expiringBefore}::timestamptz
          offset 0
        )`,
      ];

const nameConditions = ({ name }: ConsumerQuery): RawBuilder<unknown>[] =>
  name === undefined
    ? []
    : [sql`exists (select from consumer_names n where n.consumer_id = c.id and n.name = ${name} offset 0)`];

const namePartConditions = ({ namePart }: ConsumerQuery): RawBuilder<unknown>[] =>
  namePart === undefined ? [] : [isNamedWith(namePart)];

/** Whether old allocations without a record match the filter. They have no terms and no names. */
const mayBeIncomplete = ({
  projectId,
  userId,
  consumerType,
  name,
  namePart,
  expiringBefore,
  incomplete,
}: ConsumerQuery): boolean =>
  expiringBefore === undefined &&
  name === undefined &&
  namePart === undefined &&
  (projectId ?? incomplete.projectId) === incomplete.projectId &&
  (userId ?? incomplete.userId) === incomplete.userId &&
  (consumerType ?? 'unknown') === 'unknown';
