/**
 * The migrations of development between 0.1.0 and 0.2.0, as they were. Databases that have run them, or some of them, arrive at the schema of
 * the release (see db/schema/migrate.ts).
 */
import { type Migration, sql } from 'kysely';
import * as inventoryChanges from './006_inventory_changes.ts';
import * as reliedChanges from './009_relied_changes.ts';
import * as changedParts from './010_changed_parts.ts';
import * as consumerTerms from './011_consumer_terms.ts';
import * as termsGoneTogether from './013_terms_gone_together.ts';
import * as raisedByClaims from './014_raised_by_claims.ts';
import * as goneProviders from './015_gone_providers.ts';
import * as formerConsumers from './016_former_consumers.ts';
import * as qualifiedNames from './017_qualified_names.ts';

export const unreleasedMigrations: Readonly<Record<string, Migration>> = {
  '006_inventory_changes': inventoryChanges,
  '007_service_uptime': {
    up: async (db) => {
      await sql`alter table services add column uptime varchar(255)`.execute(db);
    },
  },
  // As it was first. Later it built no indexes.
  '008_consumer_indexes': {
    up: async (db) => {
      await sql`create index consumers_user_id_uuid_idx on consumers (user_id, uuid)`.execute(db);
      await sql`create index consumers_type_uuid_idx on consumers (consumer_type_id, uuid)`.execute(db);
    },
  },
  '009_relied_changes': reliedChanges,
  '010_changed_parts': changedParts,
  '011_consumer_terms': consumerTerms,
  '012_no_consumer_indexes': {
    up: async (db) => {
      await sql`drop index if exists consumers_user_id_uuid_idx, consumers_type_uuid_idx`.execute(db);
    },
  },
  '013_terms_gone_together': termsGoneTogether,
  '014_raised_by_claims': raisedByClaims,
  '015_gone_providers': goneProviders,
  '016_former_consumers': formerConsumers,
  '017_qualified_names': qualifiedNames,
};
