/**
 * The names of all migrations, in order. They are apart from the migrations, because a process that starts on a database that has them all
 * needs nothing but their names.
 */
export const migrationNames = [
  '001_placement_schema',
  '002_change_log',
  '003_services',
  '004_entity_tags',
  '005_brought_tags',
  '006_inventory_changes',
  '007_service_uptime',
  '008_consumer_indexes',
  '009_relied_changes',
  '010_changed_parts',
  '011_consumer_terms',
  '012_no_consumer_indexes',
  '013_terms_gone_together',
  '014_raised_by_claims',
  '015_gone_providers',
  '016_former_consumers',
  '017_qualified_names',
] as const;
