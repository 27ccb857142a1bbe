import fc from 'fast-check';
import type { Changes } from '../../db/fleet/read_changes.ts';
import type { OwnWrite } from '../../src/fleet/model/own_writes.ts';
import type { AllRows } from '../fleet/made_up_fleet.ts';
import { numberedUuid } from '../support/uuids.ts';
import { aggregates } from './topology.ts';

/** A change to one provider of the deployment, as two numbers say: which provider, and what exactly. */
export type Change = { readonly kind: keyof typeof changes; readonly at: number; readonly what: number };

/** Of a refresh that finds nothing. */
export const noChanges: Changes = {
  pgSnapshot: '',
  lastXid: null,
  lastInventoryXid: null,
  changedParts: null,
  reload: false,
  isMuch: false,
  moved: null,
  touched: null,
  whole: null,
  providers: null,
  inventories: null,
  traits: null,
  aggregates: null,
  traitNames: null,
  classNames: null,
  limits: null,
};

/** How the rows look afterwards, and what a refresh would say of it; or what the process itself did. */
export type Step = readonly [rows: AllRows, changes: Changes, own?: OwnWrite];

/** Whole providers, as they are now or are no more. */
function whole(rows: AllRows, ids: readonly number[]): Step {
  const ofThem = ({ provider }: { readonly provider: number }) => ids.includes(provider);
  const changes = {
    ...noChanges,
    whole: ids,
    providers: rows.providers.filter(({ id }) => ids.includes(id)),
    inventories: rows.inventories.filter(ofThem),
    traits: rows.traits.filter(ofThem),
    aggregates: rows.aggregates.filter(ofThem),
  };
  return [rows, changes];
}

/** What a change makes of the rows of a deployment. */
export const changes = {
  claim: (rows: AllRows, id: number, what: number): Step => {
    const found = rows.inventories.find(({ provider }) => provider === id);
    if (found === undefined) return [rows, noChanges];
    const delta = (what % 5) - Math.min(2, found.used);
    const inventories = rows.inventories.map((row) => (row === found ? { ...row, used: row.used + delta } : row));
    const moved = [{ provider: id, classes: [found.class], deltas: [delta] }];
    return [
      { ...rows, inventories },
      { ...noChanges, moved, touched: [{ id, generation: what, created: null, updated: null }] },
    ];
  },
  /** The same, shown before it is read. */
  ownClaim: (rows: AllRows, id: number, what: number): Step => {
    const [claimed, { moved }] = changes.claim(rows, id, what);
    const effects = (moved ?? []).map(({ classes, deltas }) => ({
      providerId: id,
      bump: 1,
      used: classes.map((classId, index) => ({ classId, delta: deltas[index] ?? 0 })),
    }));
    return [claimed, noChanges, { xid: '', effects }];
  },
  inventory: (rows: AllRows, id: number, what: number): Step => {
    const own = rows.inventories.filter(({ provider }) => provider === id);
    const others = rows.inventories.filter(({ provider }) => provider !== id);
    const kept = what % 2 === 0 ? own.slice(1) : own.map((row) => ({ ...row, total: what, allocation_ratio: 1.5 }));
    return whole({ ...rows, inventories: [...others, ...kept] }, [id]);
  },
  traits: (rows: AllRows, id: number, what: number): Step => {
    const others = rows.traits.filter(({ provider }) => provider !== id);
    const traits = [1, 2, 3, 4, 5].filter((trait) => (what & trait) !== 0).map((trait) => ({ provider: id, trait }));
    return whole({ ...rows, traits: [...others, ...traits] }, [id]);
  },
  aggregates: (rows: AllRows, id: number, what: number): Step => {
    const others = rows.aggregates.filter(({ provider }) => provider !== id);
    const own = aggregates.filter((_, index) => (what & (1 << index)) !== 0);
    return whole({ ...rows, aggregates: [...others, ...own.map((aggregate) => ({ provider: id, aggregate }))] }, [id]);
  },
  /** To below another provider that is not below it, or to the top. */
  move: (rows: AllRows, id: number, what: number): Step => {
    const isBelow = (node: number | null): boolean =>
      node === id || (node !== null && isBelow(rows.providers.find((row) => row.id === node)?.parent ?? null));
    const parents = [null, ...rows.providers.map((row) => row.id).filter((other) => !isBelow(other))];
    const parent = parents[what % parents.length] ?? null;
    const providers = rows.providers.map((row) => (row.id === id ? { ...row, parent } : row));
    return whole({ ...rows, providers }, [id]);
  },
  remove: (rows: AllRows, id: number): Step => {
    if (rows.providers.some(({ parent }) => parent === id)) return [rows, noChanges];
    const ofOthers = ({ provider }: { readonly provider: number }) => provider !== id;
    const left = {
      ...rows,
      providers: rows.providers.filter((row) => row.id !== id),
      inventories: rows.inventories.filter(ofOthers),
      traits: rows.traits.filter(ofOthers),
      aggregates: rows.aggregates.filter(ofOthers),
    };
    return whole(left, [id]);
  },
  /** Another provider below this one, with the same of everything. */
  add: (rows: AllRows, id: number): Step => {
    const next = 1 + Math.max(...rows.providers.map((row) => row.id));
    const like = <Row extends { readonly provider: number }>(list: readonly Row[]): Row[] => [
      ...list,
      ...list.filter(({ provider }) => provider === id).map((row) => ({ ...row, provider: next })),
    ];
    const uuid = numberedUuid(next, 'c');
    const providers = rows.providers.flatMap((row) =>
      row.id === id ? [row, { ...row, id: next, uuid, name: uuid, parent: id }] : row,
    );
    const { inventories, traits, aggregates } = rows;
    return whole(
      { ...rows, providers, inventories: like(inventories), traits: like(traits), aggregates: like(aggregates) },
      [next],
    );
  },
  renameTrait: (rows: AllRows, _id: number, what: number): Step => {
    const traitNames = rows.traitNames.map((row) => (row.id === 4 ? { ...row, name: `CUSTOM_NEW_${what}` } : row));
    return [
      { ...rows, traitNames },
      { ...noChanges, traitNames },
    ];
  },
  renameClass: (rows: AllRows, _id: number, what: number): Step => {
    const rename = (row: AllRows['classNames'][number]) =>
      row.id === 4 ? { ...row, name: `CUSTOM_NEW_${what}` } : row;
    const renamed = rows.classNames.map(rename);
    return [
      { ...rows, classNames: renamed },
      { ...noChanges, classNames: renamed },
    ];
  },
};

/** One of these changes. */
export const anyChange: fc.Arbitrary<Change> = fc.record({
  // These are the keys of the object.
  kind: fc.constantFrom(...(Object.keys(changes) as (keyof typeof changes)[])),
  at: fc.nat(20),
  what: fc.nat(20),
});
