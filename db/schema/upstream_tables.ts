import type { Tables } from '../tables.ts';

/** The kind of a column's values. It decides the column's type, and how an import reads, writes and compares it. */
export type ColumnKind = 'integer' | 'text' | 'uuid' | 'ratio' | 'time';

/** A table of upstream. */
export type UpstreamTable = {
  readonly name: keyof Tables;
  /** The columns of its primary key, all of them integers. Rows are read in the order of this key. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, ColumnKind>>;
};

const stamps = { created_at: 'time', updated_at: 'time' } as const;

/** A table with the primary key `id`. */
const table = (name: keyof Tables, columns: Readonly<Record<string, ColumnKind>>): UpstreamTable => ({
  name,
  key: ['id'],
  columns: { ...stamps, id: 'integer', ...columns },
});

/** A table with the traits or the aggregates of providers. */
const membership = (name: keyof Tables, ...key: readonly string[]): UpstreamTable => ({
  name,
  key,
  columns: { ...stamps, ...Object.fromEntries(key.map((column) => [column, 'integer'] as const)) },
});

/** All tables of upstream that hold data. A table comes before the tables that refer to it. */
export const upstreamTables: readonly UpstreamTable[] = [
  table('traits', { name: 'text' }),
  table('resource_classes', { name: 'text' }),
  table('consumer_types', { name: 'text' }),
  table('projects', { external_id: 'text' }),
  table('users', { external_id: 'text' }),
  table('placement_aggregates', { uuid: 'uuid' }),
  table('resource_providers', {
    uuid: 'uuid',
    name: 'text',
    generation: 'integer',
    root_provider_id: 'integer',
    parent_provider_id: 'integer',
  }),
  table('inventories', {
    resource_provider_id: 'integer',
    resource_class_id: 'integer',
    total: 'integer',
    reserved: 'integer',
    min_unit: 'integer',
    max_unit: 'integer',
    step_size: 'integer',
    allocation_ratio: 'ratio',
  }),
  membership('resource_provider_traits', 'trait_id', 'resource_provider_id'),
  membership('resource_provider_aggregates', 'resource_provider_id', 'aggregate_id'),
  table('consumers', {
    uuid: 'uuid',
    project_id: 'integer',
    user_id: 'integer',
    generation: 'integer',
    consumer_type_id: 'integer',
  }),
  table('allocations', {
    resource_provider_id: 'integer',
    consumer_id: 'uuid',
    resource_class_id: 'integer',
    used: 'integer',
  }),
];

/**
 * The columns that a database of upstream lacks. Consumer types came with revision 422ece571366; an older one is complete without them.
 *
 * @param has whether the database has a column
 */
export function missingColumns(has: (table: string, column: string) => boolean): readonly string[] {
  const cameLater = (table: string, column: string): boolean =>
    !has('consumers', 'consumer_type_id') && (table === 'consumer_types' || column === 'consumer_type_id');
  return upstreamTables.flatMap(({ name, columns }) =>
    Object.keys(columns)
      .filter((column) => !has(name, column) && !cameLater(name, column))
      .map((column) => `${name}.${column}`),
  );
}

/** A column in which rows of one table refer to rows of another table by `id`. */
export type Reference = {
  readonly table: keyof Tables;
  readonly column: string;
  readonly to: keyof Tables;
  /**
   * Set if our schema, like upstream's, has a foreign key here. A row that refers to a missing row cannot then be
   * stored: either the column can be null ('nullable'), or the row must be deleted ('required').
   */
  readonly foreignKey?: 'nullable' | 'required';
};

/** All references between the tables. */
export const references: readonly Reference[] = [
  { table: 'resource_providers', column: 'root_provider_id', to: 'resource_providers', foreignKey: 'nullable' },
  { table: 'resource_providers', column: 'parent_provider_id', to: 'resource_providers', foreignKey: 'nullable' },
  { table: 'resource_provider_traits', column: 'trait_id', to: 'traits', foreignKey: 'required' },
  {
    table: 'resource_provider_traits',
    column: 'resource_provider_id',
    to: 'resource_providers',
    foreignKey: 'required',
  },
  { table: 'consumers', column: 'consumer_type_id', to: 'consumer_types', foreignKey: 'nullable' },
  { table: 'consumers', column: 'project_id', to: 'projects' },
  { table: 'consumers', column: 'user_id', to: 'users' },
  { table: 'inventories', column: 'resource_provider_id', to: 'resource_providers' },
  { table: 'inventories', column: 'resource_class_id', to: 'resource_classes' },
  { table: 'resource_provider_aggregates', column: 'resource_provider_id', to: 'resource_providers' },
  { table: 'resource_provider_aggregates', column: 'aggregate_id', to: 'placement_aggregates' },
  { table: 'allocations', column: 'resource_provider_id', to: 'resource_providers' },
  { table: 'allocations', column: 'resource_class_id', to: 'resource_classes' },
];
