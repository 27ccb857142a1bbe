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
  '006_changed_parts',
  '007_uptime',
  '008_consumer_terms',
] as const;
