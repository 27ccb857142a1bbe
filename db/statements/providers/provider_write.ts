import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { lockProviders, lockProvidersFirst } from '../locked_rows.ts';
import { lockChangedTrees } from '../relied_locks.ts';
import { createChildren, createRoots, type NewChild, type NewProvider } from './create_providers.ts';
import { type GuardedAggregates, setAggregates, setLastAggregates, type WantedAggregates } from './set_aggregates.ts';
import { setTraits, type WantedTraits } from './set_traits.ts';
import { type WantedInventories, writeInventories } from './write_inventories.ts';

/** The writes of providers that can share a transaction. `last aggregates`: aggregates without a generation, where the last write wins. */
type WritesByKind = {
  readonly root: NewProvider;
  readonly child: NewChild;
  readonly inventories: WantedInventories;
  readonly traits: WantedTraits;
  readonly aggregates: GuardedAggregates;
  readonly 'last aggregates': WantedAggregates;
};

/** A new provider, or a write of a part of a provider. The write is not done where what it was judged by has changed. */
export type ProviderWrite = {
  [Kind in keyof WritesByKind]: { readonly kind: Kind } & WritesByKind[Kind];
}[keyof WritesByKind];

/** A write that was done. */
export type DoneWrite = {
  readonly write: ProviderWrite;
  readonly id: number;
  /** The generation of the provider after the write; null where the generation stays as it was. */
  readonly generation: number | null;
  /** The parent of a new provider; null without one, and for other writes. */
  readonly parentId: number | null;
  /** The root of the tree in which it was made; null without a parent, and for other writes. */
  readonly rootId: number | null;
  /** The transaction, as PostgreSQL's text form of `xid8`. */
  readonly xid: string;
  /** When it was written, in seconds since 1970. */
  readonly seconds: number;
};

/** The provider that a write changes; undefined for a new one. */
export const changedIdOf = (write: ProviderWrite): number | undefined =>
  'providerId' in write ? write.providerId : undefined;

/** The provider that a write locks: the one that it changes, or the parent of the one that it creates. */
export const lockedIdOf = (write: ProviderWrite): number | undefined =>
  write.kind === 'child' ? write.parent.id : changedIdOf(write);

/**
 * Does several writes in one transaction and one round trip, with one statement for all writes of a kind. First all providers, and then the
 * trees of the providers that change, are locked in the order in which claims lock them, so that two such transactions cannot deadlock.
 *
 * @param writes no two of them change the same provider
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 * @returns the writes that were done
 * @throws `lockNotAvailable` if another transaction holds a lock that one of the writes needs, and other errors of the
 *   database. Then nothing of any write was done.
 */
export async function writeProviders(
  { transaction }: Pick<Database, 'transaction'>,
  writes: readonly ProviderWrite[],
  wait?: LockWait,
): Promise<ReadonlyMap<ProviderWrite, DoneWrite>> {
  const ids = [...new Set(writes.flatMap((write) => lockedIdOf(write) ?? []))];
  const changed = [...new Set(writes.flatMap((write) => changedIdOf(write) ?? []))];
  const trees = changed.length === 0 ? [] : [lockChangedTrees(sql`id = any(${changed}::integer[])`)];
  const locks = ids.length === 0 ? [] : [...locksOf(ids, wait), ...trees];
  // In one order of the kinds: two transactions that insert the same names or aggregates for several kinds would
  // deadlock otherwise.
  const byKind = [...Map.groupBy(writes, ({ kind }) => kind)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const groups = byKind.map(([kind, ofKind]) => ({
    ofKind,
    // Each list has the writes of one kind, but TypeScript does not know of which.
    statements: (statementsOf[kind] as (writes: readonly unknown[]) => readonly RawBuilder<unknown>[])(ofKind),
  }));
  const results = await transaction([...locks, ...groups.flatMap(({ statements }) => statements)], wait);
  const done = new Map<ProviderWrite, DoneWrite>();
  let last = locks.length - 1;
  for (const { ofKind, statements } of groups) {
    last += statements.length;
    const rows = results[last] as readonly DoneRow[]; // the rows of the last statement of this kind
    for (const { index, ...row } of rows) {
      const write = ofKind[index];
      if (write !== undefined) done.set(write, { write, ...row });
    }
  }
  return done;
}

const locksOf = (ids: readonly number[], wait: LockWait | undefined): readonly RawBuilder<unknown>[] => {
  const longer = lockProvidersFirst(ids, wait);
  return longer.length > 0 ? longer : [lockProviders(ids)];
};

/** The last statement of each kind returns one such row for each write that was done. `index` is the index in the list of that kind. */
type DoneRow = Omit<DoneWrite, 'write'> & { readonly index: number };

const statementsOf: {
  readonly [Kind in keyof WritesByKind]: (writes: readonly WritesByKind[Kind][]) => readonly RawBuilder<unknown>[];
} = {
  root: createRoots,
  child: createChildren,
  inventories: writeInventories,
  traits: setTraits,
  aggregates: setAggregates,
  'last aggregates': setLastAggregates,
};
