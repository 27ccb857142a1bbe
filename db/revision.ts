import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { hasSqlstate, sqlstate } from './sqlstate.ts';

/** The revisions of upstream's schema, oldest first. Ours is the last, with additions that Kysely's own table counts. */
export const revisions: readonly string[] = [
  'b4ed3a175331',
  '611cd6dffd7b',
  'b5c396305c25',
  '422ece571366',
  'a082b8bb98d0',
];

/** The revision that table alembic_version names; undefined where it names none. */
export async function readRevision({ kysely }: Database): Promise<string | undefined> {
  try {
    const row = await kysely.selectFrom('alembic_version').select('version_num').executeTakeFirst();
    return row?.version_num;
  } catch (error) {
    if (hasSqlstate(error, sqlstate.undefinedTable)) return undefined;
    throw error;
  }
}

/**
 * Says in table alembic_version that the schema is at a revision, and changes nothing else.
 *
 * @param name a revision, the beginning of one (4 characters or more), `head`, or `base` for none
 * @throws Error where there is no such revision.
 */
export async function stampRevision({ kysely }: Database, name: string): Promise<void> {
  const revision = findRevision(name);
  await kysely.transaction().execute(async (trx) => {
    await sql`create table if not exists alembic_version (
      version_num varchar(32) not null constraint alembic_version_pkc primary key)`.execute(trx);
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
