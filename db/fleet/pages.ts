import { type Kysely, type RawBuilder, sql } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import type { Tables } from '../tables.ts';
import {
  areAmong,
  type FleetPage,
  type Ids,
  listOf,
  type ProviderRow,
  selectInventoriesOf,
  selectProviders,
  selectTraits,
} from './rows.ts';

/*
 * How thousands of rows are read: as one row of JSON lists. Equal values are in a list once, with all providers that
 * have them. So PostgreSQL needs a third of the time. The embedded database, which sends every row through its protocol
 * in this process, needs a fifth.
 */

type Page = {
  /** A list for each field, all in the same order; null instead of a list if there are no providers. */
  readonly providers: { readonly [Field in keyof ProviderRow]: readonly ProviderRow[Field][] | null };
  readonly inventories: FleetPage['inventories'] | null;
  readonly traits: FleetPage['traits'] | null;
  readonly aggregates: FleetPage['aggregates'] | null;
};

/** How many providers one page has: about half a megabyte of text. */
export const usualPage = 2000;

/**
 * Reads pages in order. The next pages are read while the caller handles a page, so that the server and this process
 * work at the same time.
 *
 * @param readers transactions that see the same snapshot, and read pages alternately. More may be added meanwhile. If one of the added
 *   transactions fails, it is removed, and the first one reads its pages
 * @param pages the ids of the providers of each page
 */
export async function* readPages(
  readers: [Kysely<Tables>, ...Kysely<Tables>[]],
  pages: readonly Ids[],
): AsyncGenerator<FleetPage> {
  const reading: Promise<FleetPage>[] = [];
  const readInstead = (ids: Ids, failed: Kysely<Tables>): Promise<FleetPage> => {
    const index = readers.indexOf(failed);
    if (index !== -1) readers.splice(index, 1);
    return readPage(readers[0], ids);
  };
  for (const [index, ids] of pages.entries()) {
    const reader = readers[index % readers.length] ?? readers[0];
    const page = readPage(reader, ids);
    const read = reader === readers[0] ? page : page.catch(() => readInstead(ids, reader));
    read.catch(() => {}); // the error is thrown below, when the page is awaited
    reading.push(read);
    const next = reading.length > pagesAhead * readers.length ? reading.shift() : undefined;
    if (next !== undefined) yield await next;
  }
  for (const page of reading) yield await page;
}

/** Of each reader, one page that the server works on, and one that it begins right after that. */
const pagesAhead = 2;

/** Reads everything about some providers. */
async function readPage(db: Kysely<Tables>, ids: Ids): Promise<FleetPage> {
  const page = await onlyRow(db, selectPage(ids));
  const { id, uuid, name, generation, parent, created, updated } = page.providers;
  return {
    providers: (id ?? []).map(
      (id, index): ProviderRow => ({
        id,
        uuid: uuid?.[index] ?? '',
        name: name?.[index] ?? null,
        generation: generation?.[index] ?? 0,
        parent: parent?.[index] ?? null,
        created: created?.[index] ?? null,
        updated: updated?.[index] ?? null,
      }),
    ),
    inventories: page.inventories ?? [],
    traits: page.traits ?? [],
    aggregates: page.aggregates ?? [],
  };
}

function selectPage(ids: Ids): RawBuilder<Page> {
  const isOfThem = sql`resource_provider_id ${areAmong(ids)}`;
  return sql<Page>`select
    (select json_build_object(${providerLists}) from (${selectProviders} where id ${areAmong(ids)}) as p) as providers,
    ${listOf(sql`
      select class, total, reserved, min_unit, max_unit, step_size, allocation_ratio,
        array_agg(provider) as providers, array_agg(modified) as modified, array_agg(used) as used
      from (${selectInventoriesOf(ids)}) as i group by 1, 2, 3, 4, 5, 6, 7`)} as inventories,
    ${listOf(sql`
      select trait, array_agg(provider) as providers from (${selectTraits} where ${isOfThem}) as t group by 1`)} as traits,
    ${listOf(sql`
      select a.uuid as aggregate, array_agg(m.resource_provider_id) as providers
      from resource_provider_aggregates m join placement_aggregates a on a.id = m.aggregate_id
      where m.${isOfThem} group by a.id order by a.id`)} as aggregates`;
}

const providerFields: readonly (keyof ProviderRow)[] = [
  'id',
  'uuid',
  'name',
  'generation',
  'parent',
  'created',
  'updated',
];

/** A list for each field takes a third less time than one for each provider. */
const providerLists = sql.join(providerFields.map((field) => sql`${sql.lit(field)}, array_agg(${sql.ref(field)})`));
