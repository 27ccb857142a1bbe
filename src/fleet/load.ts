import { sql, type Transaction } from 'kysely';
import type { Database } from '../../db/connect.ts';
import { type Moment, readMoment } from '../../db/statements/change_log.ts';
import type { Tables } from '../../db/tables.ts';
import { buildFleet, type LivingFleet } from './fleet.ts';
import { readPage } from './pages.ts';
import { type IdRange, selectClassNames, selectTraitNames } from './rows.ts';

/** The fleet with everything about providers in the database, as one snapshot saw it. */
export type Loaded = {
  readonly living: LivingFleet;
  readonly moment: Moment;
};

/** So many providers are read at once: about half a megabyte of text. */
const usualPage = 2000;

/**
 * Reads all of it in one transaction, in which every statement has the same snapshot. Each page is taken into the fleet before
 * the next is read: all rows at once would take more memory than the fleet itself.
 */
export function loadFleet({ patient }: Database, providersPerPage = usualPage): Promise<Loaded> {
  return patient
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const moment = await readMoment(trx);
      const builder = buildFleet({
        traitNames: (await selectTraitNames.execute(trx)).rows,
        classNames: (await selectClassNames.execute(trx)).rows,
      });
      for (const range of await pageRanges(trx, providersPerPage)) builder.add(await readPage(trx, range));
      return { living: builder.finish(), moment };
    });
}

/** Ranges that hold all ids together, each those of one page. */
async function pageRanges(trx: Transaction<Tables>, providersPerPage: number): Promise<readonly IdRange[]> {
  const { rows } = await sql<{ last: number }>`
    select id as last from (select id, row_number() over (order by id) as place from resource_providers) as numbered
    where place % ${providersPerPage} = 0 order by id`.execute(trx);
  const lasts = [...rows.map(({ last }) => last), maxId];
  return lasts.map((last, place) => ({ first: (lasts[place - 1] ?? minId - 1) + 1, last }));
}

/** Of PostgreSQL's integer. */
const [minId, maxId] = [-(2 ** 31), 2 ** 31 - 1];
