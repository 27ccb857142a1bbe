import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Changes } from '../../db/fleet/read_changes.ts';
import type { CandidateRequest, RequestGroup } from '../../src/candidates/request.ts';
import { candidatesJson } from '../../src/candidates/response.ts';
import { search } from '../../src/candidates/search.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { type OwnWrite, showEffects } from '../../src/fleet/own_writes.ts';
import { ApiError } from '../../src/rest/errors.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { aggregates, classNames, rowsOf } from './topology.ts';

/** A change to one provider of the deployment. Two numbers choose the provider, and the change. */
type Change = { readonly kind: keyof typeof changes; readonly at: number; readonly what: number };

const noChanges: Changes = {
  snapshot: '',
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
};

/** The rows after a change, and what a refresh reads of it; or a write of the process itself. */
type Step = readonly [rows: AllRows, changes: Changes, own?: OwnWrite];

/** A change of whole providers: as they are now, or deleted. */
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

const changes = {
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
      used: classes.map((classId, place) => ({ classId, delta: deltas[place] ?? 0 })),
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
    const own = aggregates.filter((_, place) => (what & (1 << place)) !== 0);
    return whole({ ...rows, aggregates: [...others, ...own.map((aggregate) => ({ provider: id, aggregate }))] }, [id]);
  },
  /** To below another provider that is not below it, or to the top. */
  move: (rows: AllRows, id: number, what: number): Step => {
    const isBelow = (node: number | null): boolean =>
      node === id || (node !== null && isBelow(rows.providers.find((row) => row.id === node)?.parent ?? null));
    const places = [null, ...rows.providers.map((row) => row.id).filter((other) => !isBelow(other))];
    const parent = places[what % places.length] ?? null;
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
    const uuid = `cccccccc-0000-4000-8000-${`${next}`.padStart(12, '0')}`;
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

const anyChange: fc.Arbitrary<Change> = fc.record({
  // These are the keys of the object.
  kind: fc.constantFrom(...(Object.keys(changes) as (keyof typeof changes)[])),
  at: fc.nat(20),
  what: fc.nat(20),
});

/** A request that most providers of any deployment satisfy. */
const plainRequests = classNames.slice(0, 3).map((name) => requestOf([groupOf('', { [name]: 1 })]));

/** The answer to any request of 1.39, which may be a refusal: names may have been deleted. */
type FoundOrRefused = { readonly allocation_requests: readonly string[] } | string;

const hasCandidates = (answer: FoundOrRefused): boolean =>
  typeof answer !== 'string' && answer.allocation_requests.length > 0;

function answerTo(fleet: Fleet, request: CandidateRequest): FoundOrRefused {
  try {
    const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
    const answer: { allocation_requests: unknown[] } = JSON.parse(
      Buffer.concat([...candidatesJson(fleet, request, candidates, 39)]).toString(),
    );
    // A fleet that was changed lists the same in another order than a new one.
    return { ...answer, allocation_requests: answer.allocation_requests.map((each) => JSON.stringify(each)).sort() };
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/**
 * A request, and requests that differ from it in one respect: what is cached for one must not be used for the others.
 */
function alike(request: CandidateRequest): CandidateRequest[] {
  const but = (change: (group: RequestGroup) => Partial<RequestGroup>): CandidateRequest => ({
    ...request,
    groups: request.groups.map((group) => ({ ...group, ...change(group) })),
  });
  return [
    request,
    but(({ resources }) => ({ resources: new Map([...resources].map(([name, amount]) => [name, amount + 1])) })),
    but(({ traits }) => ({ traits: { ...traits, required: [] } })),
    but(({ traits }) => ({ traits: { ...traits, forbidden: [] } })),
    but(({ aggregates: { forbidden } }) => ({ aggregates: { required: [], forbidden } })),
    but(({ aggregates: { required } }) => ({ aggregates: { required, forbidden: [] } })),
    but(() => ({ inTree: undefined })),
  ];
}

test('what is cached with a tree is up to date after any change, and right for any request', () => {
  let found = 0;
  // With the similar requests there are more groups than a tree caches.
  const anyRequests = fc.array(anyRequest, { maxLength: 2 });
  fc.assert(
    fc.property(
      anyTopology,
      anyRequests,
      fc.array(anyChange, { minLength: 1, maxLength: 8 }),
      (topology, more, list) => {
        const requests = [...plainRequests, ...more.flatMap(alike)];
        const answers = (fleet: Fleet) => requests.map((request) => answerTo(fleet, request));
        let rows = rowsOf(topology);
        const { fleet, apply } = createFleet(rows);
        answers(fleet);
        for (const { kind, at, what } of list) {
          const id = rows.providers[at % rows.providers.length]?.id;
          if (id === undefined) return;
          const [next, told, own] = changes[kind](rows, id, what);
          if (own === undefined) apply(told);
          else showEffects(fleet, own, 1);
          rows = next;
          // Each request on a new fleet, which has cached nothing.
          const expected = requests.map((request) => answerTo(createFleet(rows).fleet, request));
          assert.deepEqual(answers(fleet), expected, kind);
          // The same again, from what was just cached.
          assert.deepEqual(answers(fleet), expected, kind);
          found += expected.slice(plainRequests.length).filter(hasCandidates).length;
        }
      },
    ),
    { numRuns: 300 },
  );
  assert.ok(found > 1000, `${found} answers`);
});
