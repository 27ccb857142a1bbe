import { type QueryExecutorProvider, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { executedMigrations } from './executed_migrations.ts';
import { findForeignTables } from './foreign_tables.ts';
import { hasTable, noneWithoutTable } from './missing_table.ts';

/** The revisions of upstream's schema before consumer types were added, oldest first. */
const beforeConsumerTypes: readonly string[] = ['b4ed3a175331', '611cd6dffd7b', 'b5c396305c25'];
const withConsumerTypes = '422ece571366';
const withoutRedundantIndexes = 'a082b8bb98d0';

/**
 * The revisions of upstream's schema, oldest first. A new database has the last one. A database that upstream made has
 * one of the last two, which differ only in indexes. The migrations of this service are recorded in Kysely's own table.
 */
export const revisions: readonly string[] = [...beforeConsumerTypes, withConsumerTypes, withoutRedundantIndexes];

/**
 * Indexes that revision a082b8bb98d0 drops, since the unique constraints have indexes themselves. It fails if one of
 * them is missing.
 */
const redundantIndexes: readonly string[] = [
  'inventories_resource_provider_id_idx',
  'inventories_resource_provider_resource_class_idx',
  'ix_placement_aggregates_uuid',
  'resource_providers_name_idx',
  'resource_providers_uuid_idx',
];

/** The revision in table alembic_version; undefined if it has none. */
export async function readRevision(database: Database): Promise<string | undefined> {
  return (await readRevisions(database))[0];
}

/** All revisions in table alembic_version: databases of other services may have several. */
async function readRevisions({ unlimited }: Database): Promise<readonly string[]> {
  const query = unlimited.selectFrom('alembic_version').select('version_num').orderBy('version_num');
  return (await noneWithoutTable(query.execute())).map(({ version_num }) => version_num);
}

/** Whether a revision is a known one of Placement's schema, and not of another service or of a newer Placement. */
export const isKnownRevision = (revision: string): boolean => revisions.includes(revision);

/**
 * Refuses a database that was made by another service or by a newer Placement, by the revision in its table
 * alembic_version, or by its tables. A database that already had one of our migrations is not checked.
 *
 * @throws Error with what was found, and the remedy.
 */
export async function refuseForeignDatabase(database: Database): Promise<void> {
  const hasMigrations = async (): Promise<boolean> => (await executedMigrations(database)).length > 0;
  if (await hasMigrations()) return;
  const problem = (await foreignRevisionProblem(database)) ?? (await foreignTablesProblem(database));
  // Another process may have run our migrations since: each records itself together with its tables.
  if (problem !== undefined && !(await hasMigrations())) throw new Error(problem);
}

async function foreignTablesProblem(database: Database): Promise<string | undefined> {
  const found = await findForeignTables(database);
  return (
    found &&
    `${found} Nothing was changed. Correct [placement_database] connection, or create an empty database for this service.`
  );
}

/** The message about revisions that do not belong to Placement; undefined if there are none. */
async function foreignRevisionProblem(database: Database): Promise<string | undefined> {
  const unknown = (await readRevisions(database)).filter((revision) => !isKnownRevision(revision));
  if (unknown.length === 0) return undefined;
  return (
    `The database is at revision ${unknown.join(', ')}, which is none of Placement's: those known are ${revisions.join(', ')}. ` +
    'It is the database of another service, such as Keystone, or of a newer OpenStack Placement. Nothing was changed. Correct ' +
    "[placement_database] connection; a newer Placement's database needs a newer release of this service."
  );
}

/**
 * Writes the revision of the tables into table alembic_version, if that has no row, or a revision from before consumer
 * types: upstream's `db sync` would try to add these again, and fail. Any other row stays as upstream wrote it, so that
 * upstream's `db sync` continues from there. This includes an unknown revision, which a newer upstream on the same
 * database wrote.
 *
 * @param db a connection or a transaction
 */
export async function correctRevision(db: QueryExecutorProvider): Promise<void> {
  // `create table if not exists` alone is not enough: it fails for a role that may not create tables, even if the table
  // exists.
  if (!(await hasTable(db, 'alembic_version'))) await createVersionTable(db);
  const { rows } = await sql<{ version_num: string }>`select version_num from alembic_version`.execute(db);
  if (rows.length > 0 && rows.every(({ version_num }) => !beforeConsumerTypes.includes(version_num))) return;
  const { rows: indexes } = await sql`
    select from unnest(${redundantIndexes}::text[]) as name where to_regclass(name) is not null`.execute(db);
  const revision = indexes.length > 0 ? withConsumerTypes : withoutRedundantIndexes;
  // If two processes do this at the same time, the second one changes nothing.
  await sql`with outdated as (delete from alembic_version where version_num = any(${beforeConsumerTypes}::text[]))
    insert into alembic_version (version_num) select ${revision}
    where not exists (select from alembic_version where version_num <> all(${beforeConsumerTypes}::text[]))
    on conflict do nothing`.execute(db);
}

async function createVersionTable(db: QueryExecutorProvider): Promise<void> {
  await sql`create table if not exists alembic_version (
    version_num varchar(32) not null constraint alembic_version_pkc primary key)`.execute(db);
}

/**
 * Writes a revision into table alembic_version, and changes nothing else.
 *
 * @param name a revision, the beginning of one (4 characters or more), `head`, or `base` for none
 * @throws Error if there is no such revision, or the database belongs to another service.
 */
export async function stampRevision(database: Database, name: string): Promise<void> {
  const revision = findRevision(name);
  await refuseForeignDatabase(database);
  await database.unlimited.transaction().execute(async (trx) => {
    await createVersionTable(trx);
    // If two processes do this at the same time, the second one must see the row of the first.
    await sql`lock table alembic_version in share row exclusive mode`.execute(trx);
    await trx.deleteFrom('alembic_version').execute();
    if (revision !== undefined) await trx.insertInto('alembic_version').values({ version_num: revision }).execute();
  });
}

function findRevision(name: string): string | undefined {
  if (name === 'base') return undefined;
  if (name === 'head' || name === 'heads') return revisions.at(-1);
  const found = revisions.find((revision) => name.length >= 4 && revision.startsWith(name));
  if (found !== undefined) return found;
  throw new Error(
    `There is no revision "${name}" of the database. Name one of ${revisions.join(', ')}, or head, or base for none.`,
  );
}
