import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import type { FleetSnapshot } from './change_log.ts';
import { readChangedIds, readNames } from './changed_parts.ts';
import { inSnapshot } from './log_position.ts';
import { readPages } from './pages.ts';
import { areAmong, type FleetPage, type Ids, type NameRows } from './rows.ts';

/** Providers in one snapshot, and which of them have changed since an earlier snapshot, by the log. */
export type ReadBeside = {
  /** Undefined where there are more providers than were to be read: then only `ids` has them. */
  readonly page: FleetPage | undefined;
  readonly ids: readonly number[];
  /** All providers that changed, whether they were requested or not. */
  readonly changed: ReadonlySet<number>;
};

/** How long a statement waits for a lock, in milliseconds: a table that is locked is compared another time. */
const lockTimeoutMs = 1_000;

/**
 * Reads providers, and what the log has since an earlier snapshot, by one statement: all providers that the log does not name must be as
 * they were at that snapshot.
 *
 * @param options.most how many providers are read at most
 * @returns undefined where the log lacks changes, or everything must be loaded
 */
export function readUnchanged(
  database: Database,
  since: FleetSnapshot,
  { wanted, most }: { readonly wanted: Ids; readonly most: number },
): Promise<ReadBeside | undefined> {
  return inSnapshot(
    database,
    async (trx) => {
      const { reload, ids: logged } = await readChangedIds(trx, since);
      if (reload) return undefined;
      const changed = new Set(logged ?? []);
      const { ids } = await onlyRow(
        trx,
        sql<{
          ids: number[];
        }>`select coalesce(json_agg(id), '[]') as ids from resource_providers where id ${areAmong(wanted)}`,
      );
      let page: FleetPage | undefined;
      if (ids.length <= most) for await (const only of readPages([trx], [wanted])) page = only;
      return { page, ids, changed };
    },
    lockTimeoutMs,
  );
}

/** Reads all names; undefined where the log says that some changed since a snapshot, or lacks changes. */
export function readUnchangedNames(database: Database, since: FleetSnapshot): Promise<NameRows | undefined> {
  return inSnapshot(
    database,
    async (trx) => {
      const { reload, areNamesChanged } = await readChangedIds(trx, since);
      return reload || areNamesChanged ? undefined : readNames(trx);
    },
    lockTimeoutMs,
  );
}
