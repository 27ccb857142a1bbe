import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { onlyRow } from './only_row.ts';

/** SQL_ASCII, which clusters made without a locale have, stores every byte as it is. */
const storeEverything: readonly string[] = ['UTF8', 'SQL_ASCII'];

/**
 * Refuses a database with an encoding such as LATIN1. A request with a character that it cannot store would fail, and
 * so would all other requests in the same statement.
 *
 * @throws Error with the encoding found and the remedy.
 */
export async function refuseNarrowEncodings({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const { encoding, role } = await onlyRow(
    kysely,
    sql<{ encoding: string; role: string }>`
      select current_setting('server_encoding') as encoding, quote_ident(current_user) as role`,
  );
  if (storeEverything.includes(encoding)) return;
  // The locale of the server usually belongs to that encoding, and cannot be used with UTF-8. So the new database gets
  // "C".
  const create = `create database placement_utf8 owner ${role} encoding 'UTF8' lc_collate 'C' lc_ctype 'C' template template0;`;
  throw new Error(
    `The database has the encoding ${encoding}, in which not all names can be stored that clients may send. Nothing was changed. ` +
      `Make another one (${create}), move what this one holds there by pg_dump and pg_restore, and set [placement_database] ` +
      'connection to it.',
  );
}
