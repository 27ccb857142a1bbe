import { type Kysely, sql, type Transaction } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { type FleetSnapshot, readFleetSnapshot } from '../../../db/fleet/change_log.ts';
import { didMostChange, readChangedIds, readLimitRows, readNames } from '../../../db/fleet/changed_parts.ts';
import { besideSnapshot, inSnapshot, type LogState, readLogState } from '../../../db/fleet/log_position.ts';
import { readPages, usualPage } from '../../../db/fleet/pages.ts';
import type { Changes } from '../../../db/fleet/read_changes.ts';
import { type Ids, selectClassNames, selectTraitNames } from '../../../db/fleet/rows.ts';
import type { Tables } from '../../../db/tables.ts';
import { buildFleet, type LivingFleet } from '../model/fleet.ts';
import type { HeldSnapshots } from '../model/held_snapshots.ts';

/** The whole fleet, as one snapshot of the database shows it. */
type LoadedFleet = {
  readonly living: LivingFleet;
  readonly snapshot: FleetSnapshot;
  readonly log: LogState;
};

/**
 * Reads the whole fleet in one transaction, in which every statement has the same snapshot. Each page is added to the
 * fleet as soon as it is read: all rows at once would need more memory than the fleet itself.
 *
 * @param options.snapshots the held snapshots of the process
 * @param options.isStart whether the process starts, and needs its connections for nothing else
 */
export function loadFleet(
  database: Database,
  options: { readonly providersPerPage?: number; readonly snapshots?: HeldSnapshots; readonly isStart?: boolean } = {},
): Promise<LoadedFleet> {
  const { providersPerPage = usualPage, snapshots, isStart = false } = options;
  return inSnapshot(database, async (trx) => {
    const snapshot = await readFleetSnapshot(trx);
    const log = await readLogState(trx);
    const names = {
      traitNames: (await selectTraitNames.execute(trx)).rows,
      classNames: (await selectClassNames.execute(trx)).rows,
    };
    const builder = buildFleet({ ...names, limits: await readLimitRows(trx) }, snapshot.serverRun, snapshots);
    const readers: Readers = [trx];
    let end = (): void => {};
    const pages = await pagesOfAll(trx, providersPerPage);
    let mayAdd = isStart && database.engine === 'postgresql' && pages.length >= fewestForTwo;
    try {
      for await (const page of readPages(readers, pages)) {
        if (mayAdd) end = addReader(database, readers);
        mayAdd = false;
        builder.add(page);
      }
    } finally {
      end();
    }
    return { living: builder.finish(), snapshot, log };
  });
}

/** With fewer pages the first transaction would have read all pages before a second one has begun. */
const fewestForTwo = 8;

type Readers = [Transaction<Tables>, ...Kysely<Tables>[]];

/**
 * Adds a second transaction that reads the fleet as soon as it has a connection: PostgreSQL takes longer than this process.
 *
 * Before it reads a page, it takes a lock on each table and index, as the first transaction has since its first page. Otherwise the second
 * transaction could wait behind a `VACUUM FULL` that waits for the first one.
 *
 * @returns a function that ends the second transaction
 */
function addReader(database: Database, readers: Readers): () => void {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  besideSnapshot(database, readers[0], async (second) => {
    await sql`set local lock_timeout = 100`.execute(second);
    for await (const _ of readPages([second], [noIds]));
    readers.push(second);
    await ended;
  }).catch(() => {}); // then the first transaction reads all pages
  return end;
}

/** Ranges that together contain all ids, one range for each page. */
async function pagesOfAll(trx: Transaction<Tables>, providersPerPage: number): Promise<readonly Ids[]> {
  const { rows } = await sql<{ last: number }>`
    select id as last from (select id, row_number() over (order by id) as number from resource_providers) as numbered
    where number % ${providersPerPage} = 0 order by id`.execute(trx);
  const lasts = [...rows.map(({ last }) => last), maxId];
  return lasts.map((last, index) => ({ first: (lasts[index - 1] ?? minId - 1) + 1, last }));
}

/** The range of PostgreSQL's integer. */
const [minId, maxId] = [-(2 ** 31), 2 ** 31 - 1];
const noIds: Ids = { first: maxId, last: minId };

/** A change of very many providers that was read. `apply` puts it into the fleet. */
export type CaughtUp = Pick<Changes, 'pgSnapshot' | 'lastXid' | 'lastInventoryXid'> & { apply(): void };

/** How long a statement waits for a lock, in milliseconds. The statement has no other time limit, and all requests wait for its answer. */
const lockTimeoutMs = 5_000;

/**
 * Reads again all providers that changed since a snapshot: page by page in one transaction, in which every statement has
 * the same snapshot. This takes as long as loading the same number of providers at the start. No statement takes long,
 * and little more memory is used than the fleet will need for these providers.
 *
 * @returns undefined if everything must be loaded: the log lacks changes, or most providers changed
 * @throws `lockNotAvailable` if another transaction keeps a table locked.
 */
export function catchUp(database: Database, living: LivingFleet, since: FleetSnapshot): Promise<CaughtUp | undefined> {
  return inSnapshot(
    database,
    async (trx) => {
      // For thousands of ids the planner would read whole tables, and do so again for each page.
      await sql`set local enable_seqscan = off`.execute(trx);
      const most = Math.max(usualPage, living.fleet.byId.size * worthwhile);
      if (await didMostChange(trx, since, most)) return undefined;
      const { reload, ids, areNamesChanged, areLimitsChanged, ...read } = await readChangedIds(trx, since);
      if (reload) return undefined;
      const changed = ids ?? [];
      const change = living.gather();
      for await (const rows of readPages([trx], inPages(changed))) change.add(rows);
      const names = areNamesChanged ? await readNames(trx) : { traitNames: null, classNames: null };
      const limits = areLimitsChanged ? await readLimitRows(trx) : null;
      return { ...read, apply: () => change.apply(changed, { ...names, limits }) };
    },
    lockTimeoutMs,
  );
}

/**
 * If a larger share of the fleet than this changed, the fleet is loaded as a whole. A load takes little longer. It does not
 * block the process for long, since its pages are added one by one; `catchUp` applies all changes in one step.
 */
const worthwhile = 0.5;

const inPages = (ids: readonly number[]): readonly (readonly number[])[] =>
  Array.from({ length: Math.ceil(ids.length / usualPage) }, (_, page) =>
    ids.slice(page * usualPage, (page + 1) * usualPage),
  );
