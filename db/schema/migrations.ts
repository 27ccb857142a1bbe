import type { Migration } from 'kysely';
import type { migrationNames } from './migration_names.ts';
import * as placementSchema from './migrations/001_placement_schema.ts';
import * as changeLog from './migrations/002_change_log.ts';
import * as services from './migrations/003_services.ts';
import * as entityTags from './migrations/004_entity_tags.ts';
import * as broughtTags from './migrations/005_brought_tags.ts';
import * as inventoryChanges from './migrations/006_inventory_changes.ts';
import * as serviceUptime from './migrations/007_service_uptime.ts';
import * as consumerIndexes from './migrations/008_consumer_indexes.ts';
import * as reliedChanges from './migrations/009_relied_changes.ts';
import * as changedParts from './migrations/010_changed_parts.ts';
import * as consumerTerms from './migrations/011_consumer_terms.ts';
import * as noConsumerIndexes from './migrations/012_no_consumer_indexes.ts';
import * as termsGoneTogether from './migrations/013_terms_gone_together.ts';
import * as raisedByClaims from './migrations/014_raised_by_claims.ts';
import * as goneProviders from './migrations/015_gone_providers.ts';
import * as formerConsumers from './migrations/016_former_consumers.ts';
import * as qualifiedNames from './migrations/017_qualified_names.ts';

/** All migrations, by their names. They are imported, not read from a folder, so that the published package contains them. */
export const migrations: Readonly<Record<(typeof migrationNames)[number], Migration>> = {
  '001_placement_schema': placementSchema,
  '002_change_log': changeLog,
  '003_services': services,
  '004_entity_tags': entityTags,
  '005_brought_tags': broughtTags,
  '006_inventory_changes': inventoryChanges,
  '007_service_uptime': serviceUptime,
  '008_consumer_indexes': consumerIndexes,
  '009_relied_changes': reliedChanges,
  '010_changed_parts': changedParts,
  '011_consumer_terms': consumerTerms,
  '012_no_consumer_indexes': noConsumerIndexes,
  '013_terms_gone_together': termsGoneTogether,
  '014_raised_by_claims': raisedByClaims,
  '015_gone_providers': goneProviders,
  '016_former_consumers': formerConsumers,
  '017_qualified_names': qualifiedNames,
};
