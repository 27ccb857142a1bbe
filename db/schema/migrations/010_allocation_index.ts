import type { Kysely } from 'kysely';
import { buildMissingIndexes, type Index } from '../indexes_ahead.ts';

/**
 * The index by which GET /consumers finds a page of one provider, or of a tree, in the order of UUIDs. Upstream's index of
 * providers has another order, so that a page of a provider with many allocations read all of them.
 *
 * As the indexes of migration 008 it is built before the migrations begin, where that is possible.
 */
export const indexes: readonly Index[] = [
  {
    name: 'allocations_provider_consumer_idx',
    table: 'allocations',
    needs: [],
    keys: 'resource_provider_id, consumer_id',
  },
];

export const up = (db: Kysely<unknown>): Promise<void> => buildMissingIndexes(db, indexes);
