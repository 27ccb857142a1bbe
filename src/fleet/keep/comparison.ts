import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Logger } from 'pino';
import { inBackground, rest } from '../../../db/engine/background.ts';
import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { forgetTags, noteUnlogged } from '../../../db/fleet/log_position.ts';
import { readUnchanged, readUnchangedNames } from '../../../db/fleet/read_unchanged.ts';
import type { FleetPage, Ids, ProviderRow } from '../../../db/fleet/rows.ts';
import { type Reported, reporting } from '../../log/outages.ts';
import { type Names, namesOf } from '../model/names.ts';
import { type ProviderParts, partsReader } from '../model/parts.ts';
import { type Provider, rowOf } from '../model/provider.ts';
import type { FleetKeeper } from './keeper.ts';

/*
 * Writes that run no trigger leave no row in the change log: logical replication and pg_restore --disable-triggers write so, with
 * session_replication_role = replica. Such writes are found by reading all providers from time to time, piece by piece, and comparing
 * them with the fleet. Providers with a row in the log since the snapshot of the fleet are left out: they were changed by ordinary
 * transactions, which write meanwhile.
 */

/** What differs between the fleet and the database. */
export type Difference = {
  /** The tables that differ: `inventories`. */
  readonly tables: readonly string[];
  /** The providers by id; empty where names differ. */
  readonly ids: readonly number[];
  /** The UUIDs of some of them. */
  readonly uuids: readonly string[];
};

/** Where the comparison reports differences. */
export type ComparisonOptions = Reported & {
  readonly logger: Pick<Logger, 'error'>;
  /** The time between the beginnings of two comparisons, in milliseconds. */
  readonly everyMs: number;
  /** Called after each difference, when the fleet has been loaded. */
  readonly onDifference?: () => void;
};

/** How many providers are compared at once: some milliseconds of the process. */
const usualPiece = 500;
/** After each piece of several, the comparison pauses this many times as long as the piece took: most of the time is left for requests. */
const pauseForEach = 4;
/** How many UUIDs a line of the log names. */
const mostNamed = 5;

/**
 * Compares the fleet with the database from time to time. A difference is logged, and all processes load their fleets again. The embedded
 * database is not compared, since no other program can write to it.
 *
 * @returns a function that stops it
 */
export function compareFromTimeToTime(
  database: Database,
  fleet: FleetKeeper,
  options: ComparisonOptions,
): () => Promise<void> {
  const { everyMs, logger, onDifference } = options;
  if (everyMs === 0 || database.engine === 'embedded') return async () => {};
  return inBackground({
    everyMs,
    failed: reporting(options, 'The fleet could not be compared with the database; it is tried again later'),
    round: async (stopping) => {
      const difference = await compareFleet(database, fleet, { stopping });
      if (difference === undefined) return;
      logger.error(lineOf(difference));
      await repeatLostRaces(() => noteUnlogged(database));
      await repeatLostRaces(() => forgetTags(database, difference.ids));
      await fleet.fresh();
      onDifference?.();
    },
  });
}

const lineOf = ({ tables, ids, uuids }: Difference): string => {
  const [kind, others] = [ids.length === 1 ? 'provider' : 'providers', ids.length - uuids.length];
  const named = `${uuids.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
  const where = ids.length === 0 ? '' : `, of ${ids.length} resource ${kind}: ${named}`;
  return (
    `The database was changed unnoticed, in ${tables.join(', ')}${where}. A program wrote without the triggers that log changes, as ` +
    'with session_replication_role = replica (logical replication, pg_restore --disable-triggers). All is loaded anew; what was ' +
    'answered or claimed since that write may have relied on what was there before.'
  );
};

/** Some providers that are compared at once. */
type ComparedPiece = {
  /** The ids that the fleet had at the beginning. */
  readonly ids: readonly number[];
  /** The range of ids to read from the database, also of providers that the fleet lacks. */
  readonly wanted: Ids;
};

/**
 * Compares the whole fleet with the database, piece by piece. Providers that seem to differ are compared again, after a refresh.
 *
 * @param options.pieceSize how many providers are compared at once
 * @returns the first difference that is found; undefined if there is none, or if `stopping` ends the search
 */
export async function compareFleet(
  database: Database,
  fleet: FleetKeeper,
  { stopping, pieceSize = usualPiece }: { readonly stopping?: AbortSignal; readonly pieceSize?: number } = {},
): Promise<Difference | undefined> {
  const areNamesOther = () => repeatLostRaces(() => doNamesDiffer(database, fleet));
  if ((await areNamesOther()) && (await areNamesOther()))
    return { tables: ['traits or resource_classes'], ids: [], uuids: [] };
  for (const piece of piecesOf(await idsOf(fleet), pieceSize)) {
    if (stopping?.aborted) return undefined;
    const startedMs = performance.now();
    const first = await compareSome(database, fleet, piece);
    if (first !== undefined) {
      const second = await compareSome(database, fleet, { ids: first.ids, wanted: first.ids });
      if (second !== undefined) return second;
    }
    await rest(pauseForEach * (performance.now() - startedMs), stopping);
  }
  return undefined;
}

/** The ids of the fleet, ascending. They are listed in steps: a million at once would take too long. */
async function idsOf(fleet: FleetKeeper): Promise<readonly number[]> {
  const ids: number[] = [];
  const below: number[] = [];
  for (const { id } of fleet.known.byId.values()) {
    (id < 0 ? below : ids).push(id);
    if (ids.length % 20_000 === 0) await nextIteration();
  }
  // Ids below zero are assigned only after all other ids are used, or by other programs: so there are few.
  return below.length === 0 ? ids : [...below.sort((a, b) => a - b), ...ids];
}

/** Pieces that together have all possible ids. */
function* piecesOf(ids: readonly number[], pieceSize: number): Generator<ComparedPiece> {
  let first = minId;
  for (let at = 0; at === 0 || at < ids.length; at += pieceSize) {
    const some = ids.slice(at, at + pieceSize);
    const last = at + pieceSize >= ids.length ? maxId : (some.at(-1) ?? maxId);
    yield { ids: some, wanted: { first, last } };
    first = last + 1;
  }
}

/** The range of PostgreSQL's integer. */
const [minId, maxId] = [-(2 ** 31), 2 ** 31 - 1];

async function compareSome(
  database: Database,
  fleet: FleetKeeper,
  piece: ComparedPiece,
): Promise<Difference | undefined> {
  await fleet.fresh();
  if (fleet.isInDoubt()) return undefined;
  // Both are read without an `await` between them, so that the snapshot belongs to these contents.
  const { known, snapshot } = fleet;
  const contents = new Map<number, ComparedContent>();
  for (const id of piece.ids) {
    const provider = known.byId.get(id);
    if (provider !== undefined) contents.set(id, contentOf(provider));
  }
  const most = contents.size + usualPiece;
  const read = await repeatLostRaces(() => readUnchanged(database, snapshot, { wanted: piece.wanted, most }));
  if (read === undefined) return undefined;
  const { page, ids, changed } = read;
  const isKnown = (id: number): boolean => fleet.known.byId.get(id) !== undefined;
  if (page === undefined) {
    // Either the fleet has grown since the pieces were made, or the database has very many that the fleet lacks.
    const lacking = ids.filter((id) => !isKnown(id) && !changed.has(id)).slice(0, usualPiece);
    return lacking.length === 0 ? undefined : { tables: ['resource_providers'], ids: lacking, uuids: [] };
  }
  const rows = contentsOf(page, isKnown);
  const tables = new Set<string>();
  const different: number[] = [];
  for (const id of new Set([...contents.keys(), ...rows.keys()])) {
    const differing = changed.has(id) ? [] : differingTables(contents.get(id), rows.get(id));
    if (differing.length > 0) different.push(id);
    for (const table of differing) tables.add(table);
  }
  if (different.length === 0) return undefined;
  const uuids = new Map(page.providers.map(({ id, uuid }) => [id, uuid]));
  const uuidOf = (id: number): string => uuids.get(id) ?? fleet.known.byId.get(id)?.uuid ?? `id ${id}`;
  return { tables: [...tables], ids: different, uuids: different.slice(0, mostNamed).map(uuidOf) };
}

/** The content of a provider by table; as texts, since the fleet changes meanwhile. */
type ComparedContent = Readonly<Record<string, string>>;

const differingTables = (one: ComparedContent | undefined, other: ComparedContent | undefined): readonly string[] =>
  one === undefined || other === undefined
    ? ['resource_providers']
    : Object.keys(one).filter((table) => one[table] !== other[table]);

const contentOf = (provider: Provider): ComparedContent => textsOf(rowOf(provider), provider);

/** @param isKnown whether the fleet has a provider: a provider whose parent the fleet lacks is a root in it */
function contentsOf(page: FleetPage, isKnown: (id: number) => boolean): ReadonlyMap<number, ComparedContent> {
  const rows = new Map(page.providers.map((row) => [row.id, row]));
  const contents = new Map<number, ComparedContent>();
  for (const parts of partsReader()(page)) {
    const row = rows.get(parts.id);
    if (row === undefined) continue;
    const { uuid, name, generation, created, updated } = row;
    const parent = row.parent !== null && isKnown(row.parent) ? row.parent : null;
    contents.set(row.id, textsOf({ uuid, name: name ?? '', generation, parent, created, updated }, parts));
  }
  return contents;
}

const textsOf = (
  { uuid, name, generation, parent, created, updated }: Omit<ProviderRow, 'id'>,
  { inventories, traitIds, aggregates }: Omit<ProviderParts, 'id'>,
): ComparedContent => ({
  resource_providers: JSON.stringify([uuid, name, generation, parent, created, updated]),
  inventories: JSON.stringify(
    inventories.map(({ fields, modifiedAtSeconds }) => [
      fields.classId,
      fields.total,
      fields.reserved,
      fields.minUnit,
      fields.maxUnit,
      fields.stepSize,
      fields.allocationRatio,
      modifiedAtSeconds,
    ]),
  ),
  allocations: inventories.map(({ used }) => used).join(),
  resource_provider_traits: traitIds.join(),
  resource_provider_aggregates: JSON.stringify(aggregates),
});

async function doNamesDiffer(database: Database, fleet: FleetKeeper): Promise<boolean> {
  await fleet.fresh();
  if (fleet.isInDoubt()) return false;
  const { known, snapshot } = fleet;
  const [traits, classes] = [textOfNames(known.traits), textOfNames(known.classes)];
  const rows = await readUnchangedNames(database, snapshot);
  if (rows === undefined) return false;
  return traits !== textOfNames(namesOf(rows.traitNames)) || classes !== textOfNames(namesOf(rows.classNames));
}

const textOfNames = ({ byId }: Names): string => JSON.stringify([...byId.values()]);
