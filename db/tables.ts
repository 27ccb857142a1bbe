import type { ColumnType, Generated } from 'kysely';

/**
 * A timestamp column, read as a Date (the database stores UTC without a zone) and written by the statements themselves.
 */
type Timestamp = ColumnType<Date | null, Date | null | undefined, Date | null>;

type Stamps = {
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
};

/** A table of names with ids: resource classes, traits, consumer types. */
type Named = Stamps & { readonly id: Generated<number>; readonly name: string };

/**
 * The entity tag of a row. The statement that writes the row also writes the tag, or triggers do (migrations 004 and
 * 005). Null in old rows.
 */
type Tagged = { readonly etag: string | null };

/** A table of identifiers from Keystone: projects and users. */
type External = Stamps & { readonly id: Generated<number>; readonly external_id: string };

/** A time that a consumer held an amount of one class at one provider. */
type UsageRecord = {
  readonly id: Generated<string>;
  /** The UUID of the consumer. */
  readonly consumer_id: string;
  readonly name: string | null;
  /** The owner is null for allocations without a consumer record. */
  readonly project_id: number | null;
  readonly user_id: number | null;
  readonly consumer_type_id: number | null;
  /** Null where an allocation was of a provider or class that does not exist. */
  readonly provider_uuid: string | null;
  readonly provider_name: string | null;
  readonly class_name: string | null;
  readonly amount: string;
  readonly began_at: Date;
};

/**
 * The tables of the database. Names, columns and meaning are those of OpenStack Placement (revision a082b8bb98d0), so
 * that its databases are adopted as they are. This service adds `provider_changes`, `provider_changes_horizon`,
 * `inventory_changes`, `consumer_terms`, `consumer_names`, `former_consumers`, `cells`, `services`, `tokens`, `limits`,
 * `deleted_limits`, `usage_counting`, `project_usages`, `doubtful_usages`, `waiting`, `waiting_processes`, `usage_history`,
 * `open_usage_records`, `usage_records`, `resource_provider_etags` and the columns `etag`.
 */
export type Tables = {
  readonly resource_providers: Stamps & {
    readonly id: Generated<number>;
    readonly uuid: string;
    readonly name: string | null;
    readonly generation: number | null;
    readonly root_provider_id: number | null;
    readonly parent_provider_id: number | null;
  };
  readonly inventories: Stamps &
    Tagged & {
      readonly id: Generated<number>;
      readonly resource_provider_id: number;
      readonly resource_class_id: number;
      readonly total: number;
      readonly reserved: number;
      readonly min_unit: number;
      readonly max_unit: number;
      readonly step_size: number;
      readonly allocation_ratio: number;
    };
  /** `consumer_id` holds the UUID of the consumer, not the id of its row. */
  readonly allocations: Stamps & {
    readonly id: Generated<number>;
    readonly resource_provider_id: number;
    readonly consumer_id: string;
    readonly resource_class_id: number;
    readonly used: number;
  };
  readonly consumers: Stamps &
    Tagged & {
      readonly id: Generated<number>;
      readonly uuid: string;
      readonly project_id: number;
      readonly user_id: number;
      readonly generation: Generated<number>;
      readonly consumer_type_id: number | null;
    };
  readonly consumer_types: Named;
  readonly projects: External;
  readonly users: External;
  readonly resource_classes: Named & Tagged;
  readonly traits: Named & Tagged;
  readonly resource_provider_traits: Stamps & { readonly trait_id: number; readonly resource_provider_id: number };
  readonly placement_aggregates: Stamps & { readonly id: Generated<number>; readonly uuid: string | null };
  readonly resource_provider_aggregates: Stamps & {
    readonly resource_provider_id: number;
    readonly aggregate_id: number;
  };
  /**
   * The entity tags of a provider and of its parts. The statement that writes these also writes the tags, or triggers
   * do (migrations 004 and 005).
   */
  readonly resource_provider_etags: {
    readonly resource_provider_id: number;
    readonly provider: string | null;
    readonly inventories: string | null;
    readonly traits: string | null;
    readonly aggregates: string | null;
  };
  /** The revision of upstream's schema, kept up to date so that upstream's tools still work. */
  readonly alembic_version: { readonly version_num: string };
  /** The change log by which every process refreshes its fleet; see migration 002. */
  readonly provider_changes: {
    readonly xid: ColumnType<string, never, never>;
    readonly provider_id: number | null;
    readonly whole: boolean;
    readonly class_ids: readonly number[] | null;
    readonly used_deltas: readonly number[] | null;
    /** These two are of migration 006. */
    readonly uuid: string | null;
    readonly parts: number | null;
    /** These two are of migration 013. */
    readonly consumer_ids: readonly string[] | null;
    readonly logged_at: Date | null;
  };
  /** Which transactions changed inventories, traits, aggregates or parents; see migration 006. */
  readonly inventory_changes: {
    readonly xid: ColumnType<string, never, never>;
    /** Null means all providers. */
    readonly provider_id: number | null;
  };
  /** One row: changes of transactions up to `xid` may have been pruned from `provider_changes`. */
  readonly provider_changes_horizon: { readonly xid: ColumnType<string, never, string> };
  /** The ends of the terms of consumers; see migration 008. A row holds only for the generation that it names. */
  readonly consumer_terms: {
    /** The id of the record. */
    readonly consumer_id: number;
    readonly generation: number;
    readonly expires_at: Date;
  };
  /** The names of consumers; see migration 012. */
  readonly consumer_names: {
    /** The id of the record. */
    readonly consumer_id: number;
    readonly name: string;
  };
  /** The consumers that were removed, by their UUIDs; see migration 008. */
  readonly former_consumers: {
    readonly uuid: string;
    /** How many generations all former consumers with this UUID had. */
    readonly generations: number;
    /** When the last one was removed. */
    readonly removed_at: Date;
  };
  /** The groups that services belong to; see migration 003. */
  readonly cells: Stamps & {
    readonly id: Generated<number>;
    readonly uuid: string;
    readonly name: string;
    /** The highest id that a service of the cell ever got. */
    readonly last_service_id: Generated<number>;
  };
  /** The agents that serve providers. `id` is unique within the cell. */
  readonly services: Stamps & {
    readonly cell_id: number;
    readonly id: number;
    /** Null in old rows until these are read or migrated. */
    readonly uuid: string | null;
    readonly host: string;
    readonly binary: string;
    readonly topic: string | null;
    readonly zone: string | null;
    readonly disabled: Generated<boolean>;
    readonly disabled_reason: string | null;
    readonly forced_down: Generated<boolean>;
    readonly last_seen_up: Timestamp;
    /** The output of the program `uptime`; see migration 007. */
    readonly uptime: string | null;
  };
  /** Tokens of the service's own; see migration 009. */
  readonly tokens: {
    readonly id: Generated<number>;
    readonly uuid: string;
    /** The SHA-256 of the token, as hexadecimal digits. */
    readonly hash: string;
    /** How the token begins, by which people know it again. */
    readonly prefix: string;
    readonly user_id: string;
    readonly project_id: string;
    readonly roles: readonly string[];
    readonly created_at: Date;
    /** Null for a token that never expires. */
    readonly expires_at: Date | null;
    /** The hour in which it was used last; null if it never was. */
    readonly used_at: Date | null;
  };
  /** The limits of projects; see migration 010. */
  readonly limits: {
    /** Empty for the defaults. */
    readonly project: string;
    readonly generation: number;
    /** By the name of a class; null lifts the default. */
    readonly resources: Readonly<Record<string, number | null>>;
    /** The same by consumer type: `all` is for any, `unknown` for none. */
    readonly consumers: Readonly<Record<string, number | null>>;
    /** Whether an import wrote the values, and the next one may change them. */
    readonly is_imported: Generated<boolean>;
    readonly updated_at: Date;
  };
  /** The last generation of limits that were deleted. */
  readonly deleted_limits: { readonly project: string; readonly generation: number };
  /** One row while usages are counted. */
  readonly usage_counting: { readonly since: Date; readonly is_counted: boolean };
  /** Rows that add up to what projects use. */
  readonly project_usages: {
    /** Null for allocations without a consumer record. */
    readonly project_id: number | null;
    readonly consumer_type_id: number | null;
    /** The class of each amount; null where the amount is a number of consumers. */
    readonly class_ids: readonly (number | null)[];
    readonly amounts: readonly string[];
  };
  /** The projects whose rows in `project_usages` must be corrected; null means all. */
  readonly doubtful_usages: { readonly project_id: number | null };
  /** Claims that wait, of all processes; see migration 011. */
  readonly waiting: {
    /** In the order in which the claims of a line came. */
    readonly number: Generated<string>;
    /** The hash of the project and the consumers. */
    readonly claim: string;
    readonly consumers: readonly string[];
    /** The name of each, or null; null if the claim names none. */
    readonly names: readonly (string | null)[] | null;
    readonly project_id: string;
    readonly user_id: string;
    /** The projects and the users of the other owners; null if all consumers are of one owner. */
    readonly other_projects: readonly string[] | null;
    readonly other_users: readonly string[] | null;
    readonly line: string | null;
    readonly process: string;
    /** The process whose claim for the same consumers was taken over, until it has read that. */
    readonly former_process: string | null;
    readonly since: Date;
    readonly until: Date;
    /** When the request came that waits; `since` may be of an earlier one. */
    readonly asked_at: Date;
    readonly waits_for: string;
    readonly condition: string;
    /** When its client or its process ended; null while it waits. */
    readonly left_at: Date | null;
    /** Whether DELETE /waiting has ended it, and its process has not answered its client yet. */
    readonly is_removed: Generated<boolean>;
  };
  /** When each process with claims that wait was heard of last. */
  readonly waiting_processes: { readonly id: string; readonly seen_at: Date };
  /** One row while the history of usages is on; see migration 014. */
  readonly usage_history: { readonly since: Date; readonly is_complete: boolean; readonly until: Date | null };
  /** The open records, while the history is on. */
  readonly open_usage_records: UsageRecord & {
    readonly resource_provider_id: number;
    readonly resource_class_id: number;
    /** The transaction that began the record; null if an earlier one did. */
    readonly begun_by: ColumnType<string | null, never, never>;
  };
  /** What was held. */
  readonly usage_records: UsageRecord & {
    readonly ended_at: Date;
    /** Why it ended; null where the history was switched off. */
    readonly ended: string | null;
  };
};
