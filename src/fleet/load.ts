import { sql, type Transaction } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { type Moment, readMoment } from '../../db/fleet/change_log.ts';
import { type LogState, readLogState } from '../../db/fleet/log_position.ts';
import { readPages, usualPage } from '../../db/fleet/pages.ts';
import { type Ids, selectClassNames, selectTraitNames } from '../../db/fleet/rows.ts';
import type { Tables } from '../../db/schema/tables.ts';
import { buildFleet, type LivingFleet } from './fleet.ts';
import type { HeldMoments } from './held_moments.ts';

/** The whole fleet, as one snapshot of the database shows it. */
export type Loaded = {
  readonly living: LivingFleet;
  readonly moment: Moment;
  readonly log: LogState;
};

/**
 * Reads the whole fleet in one transaction, in which every statement has the same snapshot. Each page is added to the
 * fleet as soon as it is read: all rows at once would need more memory than the fleet itself.
 *
 * @param options.moments those of the process, if it has had another fleet before
 */
export function loadFleet(
  { patient }: Database,
  options: { readonly providersPerPage?: number; readonly moments?: HeldMoments } = {},
): Promise<Loaded> {
  const { providersPerPage = usualPage, moments } = options;
  return patient
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const moment = await readMoment(trx);
      const log = await readLogState(trx);
      const names = {
        traitNames: (await selectTraitNames.execute(trx)).rows,
        classNames: (await selectClassNames.execute(trx)).rows,
      };
      const builder = buildFleet(names, moment.serverRun, moments);
      for await (const page of readPages(trx, await pagesOfAll(trx, providersPerPage))) builder.add(page);
      return { living: builder.finish(), moment, log };
    });
}

/** Ranges that together contain all ids, one range for each page. */
async function pagesOfAll(trx: Transaction<Tables>, providersPerPage: number): Promise<readonly Ids[]> {
  const { rows } = await sql<{ last: number }>`
    select id as last from (select id, row_number() over (order by id) as place from resource_providers) as numbered
    where place % ${providersPerPage} = 0 order by id`.execute(trx);
  const lasts = [...rows.map(({ last }) => last), maxId];
  return lasts.map((last, place) => ({ first: (lasts[place - 1] ?? minId - 1) + 1, last }));
}

/** The range of PostgreSQL's integer. */
const [minId, maxId] = [-(2 ** 31), 2 ** 31 - 1];
