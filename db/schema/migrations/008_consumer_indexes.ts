import type { Kysely } from 'kysely';
import { buildMissingIndexes, type Index } from '../indexes_ahead.ts';

/**
 * The indexes by which GET /consumers finds a page of one user, or of one type, in the order of UUIDs. Upstream's
 * indexes serve projects, and users of a project. The index of types has 0 for consumers without a type: an index does
 * not treat nulls as one value.
 *
 * On PostgreSQL they are built before the migrations begin, without blocking writes (see indexes_ahead.ts). This
 * migration builds them where that was not possible: in the embedded database, and if the table or one of its columns
 * has just been created.
 */
export const indexes: readonly Index[] = [
  { name: 'consumers_user_id_uuid_idx', table: 'consumers', needs: ['user_id'], keys: 'user_id, uuid' },
  {
    name: 'consumers_type_uuid_idx',
    table: 'consumers',
    needs: ['consumer_type_id'],
    keys: '(coalesce(consumer_type_id, 0)), uuid',
  },
];

export const up = (db: Kysely<unknown>): Promise<void> => buildMissingIndexes(db, indexes);
