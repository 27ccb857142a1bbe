import { sql } from 'kysely';
import type { Database } from '../../db/connect.ts';
import { serverRun } from '../../db/server_run.ts';
import {
  type AggregateRow,
  type InventoryRow,
  type NameRow,
  type ProviderRow,
  selectAggregates,
  selectAllInventories,
  selectClassNames,
  selectProviders,
  selectTraitNames,
  selectTraits,
  type TraitRow,
} from './rows.ts';

/** Everything about providers in the database, as one snapshot saw it. */
export type Loaded = {
  /** What the snapshot saw, in PostgreSQL's text form of `pg_snapshot`. */
  readonly snapshot: string;
  /** Which run of the server that was (db/server_run.ts). */
  readonly serverRun: string;
  readonly providers: readonly ProviderRow[];
  readonly inventories: readonly InventoryRow[];
  readonly traits: readonly TraitRow[];
  readonly aggregates: readonly AggregateRow[];
  readonly traitNames: readonly NameRow[];
  readonly classNames: readonly NameRow[];
};

/** Reads all of it in one transaction, in which every statement has the same snapshot. */
export function loadFleet({ patient }: Database): Promise<Loaded> {
  return patient
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const { rows } = await sql<{ snapshot: string; serverRun: string }>`
        select pg_current_snapshot()::text as snapshot, ${serverRun} as "serverRun"`.execute(trx);
      return {
        snapshot: rows[0]?.snapshot ?? '',
        serverRun: rows[0]?.serverRun ?? '',
        providers: (await selectProviders.execute(trx)).rows,
        inventories: (await selectAllInventories.execute(trx)).rows,
        traits: (await selectTraits.execute(trx)).rows,
        aggregates: (await sql<AggregateRow>`${selectAggregates} order by a.id`.execute(trx)).rows,
        traitNames: (await selectTraitNames.execute(trx)).rows,
        classNames: (await selectClassNames.execute(trx)).rows,
      };
    });
}
