import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { executedMigrations } from './executed_migrations.ts';
import { noneWithoutTable } from './missing_table.ts';

/** The revisions of upstream's schema, oldest first. Ours is the last, with additions that Kysely's own table counts. */
export const revisions: readonly string[] = [
  'b4ed3a175331',
  '611cd6dffd7b',
  'b5c396305c25',
  '422ece571366',
  'a082b8bb98d0',
];

/** The revision that table alembic_version names; undefined where it names none. */
export async function readRevision(database: Database): Promise<string | undefined> {
  return (await readRevisions(database))[0];
}

/** Other services than Placement may have several. */
async function readRevisions({ patient }: Database): Promise<readonly string[]> {
  const query = patient.selectFrom('alembic_version').select('version_num').orderBy('version_num');
  return (await noneWithoutTable(query.execute())).map(({ version_num }) => version_num);
}

/** Whether it is a revision of Placement's schema, and none of another service's or of a newer Placement's. */
export const isKnownRevision = (revision: string): boolean => revisions.includes(revision);

/**
 * Refuses a database that another service's migrations made, or a newer Placement's: only its table alembic_version tells. Once
 * it has had migrations of ours it is not asked any more.
 *
 * @throws Error with the revision found, those that are known, and the remedy.
 */
export async function refuseForeignDatabase(database: Database): Promise<void> {
  const unknown = (await readRevisions(database)).filter((revision) => !isKnownRevision(revision));
  if (unknown.length === 0 || (await executedMigrations(database)).length > 0) return;
  throw new Error(
    `The database is at revision ${unknown.join(', ')}, which is none of Placement's: those known are ${revisions.join(', ')}. ` +
      'It is the database of another service, such as Keystone, or of a newer OpenStack Placement. Nothing was changed. Correct ' +
      "[placement_database] connection; a newer Placement's database needs a newer release of this service.",
  );
}

/** Names the newest revision where a stamp names an older one or none. What a newer upstream wrote there stays. */
export async function correctRevision(database: Database): Promise<void> {
  const found = await readRevisions(database);
  if (found.length === 1 && found[0] === revisions.at(-1)) return;
  if (found.every(isKnownRevision)) await stampRevision(database, 'head');
}

/**
 * Says in table alembic_version that the schema is at a revision, and changes nothing else.
 *
 * @param name a revision, the beginning of one (4 characters or more), `head`, or `base` for none
 * @throws Error where there is no such revision, or the database is another service's.
 */
export async function stampRevision(database: Database, name: string): Promise<void> {
  const revision = findRevision(name);
  await refuseForeignDatabase(database);
  await database.patient.transaction().execute(async (trx) => {
    await sql`create table if not exists alembic_version (
      version_num varchar(32) not null constraint alembic_version_pkc primary key)`.execute(trx);
    // Of two at a time the second must see the row of the first.
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
