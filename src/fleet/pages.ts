import { type RawBuilder, sql, type Transaction } from 'kysely';
import { onlyRow } from '../../db/only_row.ts';
import type { Tables } from '../../db/tables.ts';
import {
  between,
  type FleetRows,
  type IdRange,
  type InventoryRow,
  listOf,
  type ProviderRow,
  selectInventoriesBetween,
  selectProviders,
  selectTraits,
} from './rows.ts';

/*
 * How thousands of rows come from the database: as one row of JSON lists, in which what is alike stands once, with all
 * providers that have it. PostgreSQL needs a third of the time for that, and the embedded database, whose every row goes
 * through its protocol in this process, a fifth.
 */

type Page = {
  /** Lists in the order of `providerColumns`. */
  readonly providers: ListOf<
    readonly [
      id: number,
      uuid: string,
      name: string | null,
      generation: number,
      parent: number | null,
      created: number | null,
      updated: number | null,
    ]
  >;
  readonly inventories: ListOf<
    Omit<InventoryRow, 'provider' | 'modified' | 'used'> & {
      readonly providers: readonly number[];
      readonly modified: readonly (number | null)[];
      readonly used: readonly number[];
    }
  >;
  readonly traits: ListOf<{ readonly trait: number; readonly providers: readonly number[] }>;
  readonly aggregates: ListOf<{ readonly aggregate: string; readonly providers: readonly number[] }>;
};

/** Null where there is nothing in it. */
type ListOf<Item> = readonly Item[] | null;

/** Reads everything about the providers of a range. */
export async function readPage(trx: Transaction<Tables>, range: IdRange): Promise<FleetRows> {
  const page = await onlyRow(trx, selectPage(range));
  return {
    providers: (page.providers ?? []).map(
      ([id, uuid, name, generation, parent, created, updated]): ProviderRow => ({
        id,
        uuid,
        name,
        generation,
        parent,
        created,
        updated,
      }),
    ),
    inventories: (page.inventories ?? []).flatMap(({ providers, modified, used, ...fields }) =>
      providers.map((provider, place) => ({
        provider,
        ...fields,
        modified: modified[place] ?? null,
        used: used[place] ?? 0,
      })),
    ),
    traits: (page.traits ?? []).flatMap(({ trait, providers }) => providers.map((provider) => ({ provider, trait }))),
    aggregates: (page.aggregates ?? []).flatMap(({ aggregate, providers }) =>
      providers.map((provider) => ({ provider, aggregate })),
    ),
  };
}

function selectPage(range: IdRange): RawBuilder<Page> {
  const isInRange = sql`resource_provider_id ${between(range)}`;
  return sql<Page>`select
    (select json_agg(json_build_array(${providerColumns})) from (${selectProviders} where id ${between(range)}) as p)
      as providers,
    ${listOf(sql`
      select class, total, reserved, min_unit, max_unit, step_size, allocation_ratio,
        array_agg(provider) as providers, array_agg(modified) as modified, array_agg(used) as used
      from (${selectInventoriesBetween(range)}) as i group by 1, 2, 3, 4, 5, 6, 7`)} as inventories,
    ${listOf(sql`
      select trait, array_agg(provider) as providers from (${selectTraits} where ${isInRange}) as t group by 1`)} as traits,
    ${listOf(sql`
      select a.uuid as aggregate, array_agg(m.resource_provider_id) as providers
      from resource_provider_aggregates m join placement_aggregates a on a.id = m.aggregate_id
      where m.${isInRange} group by a.id order by a.id`)} as aggregates`;
}

const providerColumns = sql.raw('id, uuid, name, generation, parent, created, updated');
