import type { Migration } from 'kysely';
import type { migrationNames } from './executed_migrations.ts';
import * as placementSchema from './migrations/001_placement_schema.ts';
import * as changeLog from './migrations/002_change_log.ts';
import * as services from './migrations/003_services.ts';
import * as entityTags from './migrations/004_entity_tags.ts';
import * as broughtTags from './migrations/005_brought_tags.ts';
import * as changedParts from './migrations/006_changed_parts.ts';
import * as uptime from './migrations/007_uptime.ts';
import * as consumerTerms from './migrations/008_consumer_terms.ts';
import * as tokens from './migrations/009_tokens.ts';
import * as limits from './migrations/010_limits.ts';
import * as waiting from './migrations/011_waiting.ts';
import * as consumerNames from './migrations/012_consumer_names.ts';
import * as changedConsumers from './migrations/013_changed_consumers.ts';
import * as usageHistory from './migrations/014_usage_history.ts';
import * as replicaIdentities from './migrations/015_replica_identities.ts';
import * as lookupsOfAllocations from './migrations/016_lookups_of_allocations.ts';
import * as noCompilation from './migrations/017_no_compilation.ts';
import * as deletionsWithoutRecord from './migrations/018_deletions_without_record.ts';
import * as usagesOfRecords from './migrations/019_usages_of_records.ts';
import * as ownersOfWaiting from './migrations/020_owners_of_waiting.ts';
import * as tagsUnderLocks from './migrations/021_tags_under_locks.ts';

/** All migrations, by their names. They are imported, not read from a folder, so that the published package contains them. */
export const migrations: Readonly<Record<(typeof migrationNames)[number], Migration>> = {
  '001_placement_schema': placementSchema,
  '002_change_log': changeLog,
  '003_services': services,
  '004_entity_tags': entityTags,
  '005_brought_tags': broughtTags,
  '006_changed_parts': changedParts,
  '007_uptime': uptime,
  '008_consumer_terms': consumerTerms,
  '009_tokens': tokens,
  '010_limits': limits,
  '011_waiting': waiting,
  '012_consumer_names': consumerNames,
  '013_changed_consumers': changedConsumers,
  '014_usage_history': usageHistory,
  '015_replica_identities': replicaIdentities,
  '016_lookups_of_allocations': lookupsOfAllocations,
  '017_no_compilation': noCompilation,
  '018_deletions_without_record': deletionsWithoutRecord,
  '019_usages_of_records': usagesOfRecords,
  '020_owners_of_waiting': ownersOfWaiting,
  '021_tags_under_locks': tagsUnderLocks,
};
