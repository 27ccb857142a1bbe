/** Answers that are sent while they are computed, and while the fleet changes: each shows the snapshot of its beginning. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import v8 from 'node:v8';
import vm from 'node:vm';
import fc from 'fast-check';
import { candidatesJson } from '../../src/api/candidates/answer.ts';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import type { LivingFleet } from '../../src/fleet/model/fleet.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { streamedBody } from '../../src/http/answer.ts';
import { versionText } from '../../src/placement/versions.ts';
import { ApiError } from '../../src/request/errors.ts';
import { atOnce, openTurns } from '../../src/request/turns.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { openSearch, resolveForSearch, type SearchOptions } from '../../src/search/search.ts';
import { changeFleet } from '../fleet/change_fleet.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { readChunks, textOfChunks, turnsThatEnd } from '../support/chunks.ts';
import { search } from '../support/search.ts';
import { requestOf } from './plain_request.ts';
import { anyChange, type Change, noChanges } from './random_change.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { type Node, nodeAt, rowsOf, stockOf } from './topology.ts';

type AnswerText = { readonly allocation_requests: readonly unknown[]; readonly provider_summaries: object };

/** A search without `order` may visit the remaining trees in another order once it has listed them. */
function comparable(text: string, request: CandidateRequest): AnswerText {
  const answer: AnswerText = JSON.parse(text);
  if (request.order.length > 0) return answer;
  return { ...answer, allocation_requests: answer.allocation_requests.map((each) => JSON.stringify(each)).sort() };
}

/**
 * The text of an answer. The fleet changes before each candidate but the first, and in each pause of the search. Undefined if the request
 * is refused.
 */
function answerDuringChanges(
  { fleet, hold }: LivingFleet,
  request: CandidateRequest,
  options: SearchOptions,
  version: number,
  { isOver, change }: { readonly isOver: () => boolean; readonly change: () => void },
): string | undefined {
  try {
    const { candidates, settle } = openSearch(fleet, atOnce(resolveForSearch(fleet, request)), {
      ...options,
      turns: turnsThatEnd(isOver),
    });
    const changing = function* () {
      let isFirst = true;
      for (const candidate of candidates) {
        yield candidate;
        if (isFirst) {
          settle();
          hold(() => assert.fail('so little must be kept to the end'));
        }
        isFirst = false;
        change();
      }
    };
    return textOfChunks(candidatesJson(fleet, request, changing(), version));
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

const strategies = fc.constantFrom('depth-first' as const, 'breadth-first' as const);
const orders = fc.constantFrom<CandidateRequest['order'][]>(
  [],
  [],
  [{ kind: 'free', className: 'VCPU', mostFirst: true }],
  [{ kind: 'prefer', traitName: 'HW_CPU_X86_AVX2' }],
);

test('whatever changes between two candidates and in pauses of the search, all candidates are of one snapshot', () => {
  const seen = { several: 0, changed: 0, pauses: 0 };
  fc.assert(
    fc.property(
      anyTopology,
      anyRequest,
      fc.record({
        strategy: strategies,
        limited: fc.boolean(),
        order: orders,
        version: fc.constantFrom(12, 28, 29, 39),
      }),
      fc.array(anyChange, { minLength: 1, maxLength: 12 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
      (topology, wanted, { strategy, limited, order, version }, list, pauses) => {
        const request = { ...wanted, order };
        const options = { strategy, limited, randomize: false };
        let rows = rowsOf(topology);
        const still = createFleet(rows);
        const living = createFleet(rows);
        const left = [...list];
        let changed = 0;
        const change = (): void => {
          const next = left.shift();
          if (next === undefined) return;
          changed += 1;
          rows = changeFleet(living, rows, next);
        };
        const isOver = () => {
          const [now = false] = pauses;
          pauses.push(pauses.shift() ?? false);
          if (now) seen.pauses += 1;
          return now;
        };
        const text = answerDuringChanges(living, request, options, version, { isOver, change });
        if (text === undefined) return;
        const expected = textOfChunks(
          candidatesJson(still.fleet, request, search(still.fleet, request, options), version),
        );
        assert.deepEqual(comparable(text, request), comparable(expected, request));
        if (changed > 1) seen.several += 1;
        seen.changed += changed;
      },
    ),
    { numRuns: 1000 },
  );
  assert.ok(seen.several > 100 && seen.pauses > 1000, JSON.stringify(seen));
});

const host = (_: unknown, index: number): Node =>
  nodeAt(index, { stock: { VCPU: stockOf(8) }, ...(index % 4 === 1 ? { parent: index - 1 } : {}) });

const kinds: readonly Change['kind'][] = ['claim', 'remove', 'ownClaim', 'renameClass', 'inventory', 'traits'];

/** Moves one of the hosts below another one, both named by their index in the rows. */
function moveBelow({ apply }: LivingFleet, rows: AllRows, index: number, parentIndex: number): AllRows {
  const [moved, parent] = [rows.providers[index], rows.providers[parentIndex]];
  if (moved === undefined || parent === undefined) return rows;
  const row = { ...moved, parent: parent.id };
  const inventories = rows.inventories.filter(({ provider }) => provider === row.id);
  apply({ ...noChanges, whole: [row.id], providers: [row], inventories });
  return { ...rows, providers: rows.providers.with(index, row) };
}

// So many hosts that each answer has more than ten chunks.
for (const [version, hostCount] of [
  [1028, 60_000],
  [1039, 30_000],
] as const) {
  test(`an answer of many chunks at ${versionText(version)} shows the snapshot of the first one, though the fleet changes after each`, async () => {
    const rows = rowsOf(Array.from({ length: hostCount }, host));
    const query = version === 1039 ? parseQuery('resources=VCPU:1') : parseQuery('resources=VCPU:1&limit=39000');
    const request = parseCandidateRequest(query, version);
    const options = { strategy: 'depth-first', randomize: false, limited: version !== 1039 } as const;
    const still = createFleet(rows).fleet;
    const expected = textOfChunks(candidatesJson(still, request, search(still, request, options), version));
    const living = createFleet(rows);
    const { candidates, settle } = openSearch(living.fleet, atOnce(resolveForSearch(living.fleet, request)), options);
    let isHeld = false;
    const hold = (giveUp: () => void) => {
      settle();
      isHeld = true;
      const snapshot = living.hold(giveUp);
      return {
        end: () => {
          isHeld = false;
          snapshot.end();
        },
      };
    };
    const body = await jsonBody(candidatesJson(living.fleet, request, candidates, version), hold, openTurns());
    assert.ok(!(body instanceof Uint8Array), 'or this test proves nothing');
    let now = rows;
    const read: Uint8Array[] = [];
    for await (const chunk of readChunks(body)) {
      read.push(chunk);
      // Hosts whose candidates were sent already, and hosts that the search has not reached.
      for (const start of [10 * read.length, hostCount - 2 - 10 * read.length]) {
        for (const [index, kind] of kinds.entries()) {
          now = changeFleet(living, now, { kind, at: start - index, what: read.length });
        }
        now = moveBelow(living, now, start - kinds.length, start + 1);
      }
    }
    assert.ok(read.length > 5, `${read.length} chunks`);
    assert.equal(isHeld, false);
    assert.ok(textOfChunks(read) === expected, 'the answer is of another snapshot');
    const request2 = requestOf(request.groups, { nested: request.nested });
    const later = textOfChunks(
      candidatesJson(living.fleet, request2, search(living.fleet, request2, options), version),
    );
    const reloaded = createFleet(now).fleet;
    assert.deepEqual(
      comparable(later, request2),
      comparable(
        textOfChunks(candidatesJson(reloaded, request2, search(reloaded, request2, options), version)),
        request2,
      ),
    );
  });
}

test('if long answers keep too many providers, the oldest answer breaks off, and its providers are released', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect: () => void = vm.runInNewContext('gc');
  const count = 30_000;
  const living = createFleet(rowsOf(Array.from({ length: count }, host)));
  const request = parseCandidateRequest(parseQuery('resources=VCPU:1'), 1039);
  const options = { strategy: 'depth-first', randomize: false, limited: false } as const;
  const open = async () => {
    const { candidates, settle } = openSearch(living.fleet, atOnce(resolveForSearch(living.fleet, request)), options);
    const hold = (giveUp: () => void) => {
      settle();
      return living.hold(giveUp);
    };
    const body = await jsonBody(candidatesJson(living.fleet, request, candidates, 1039), hold, openTurns());
    return body instanceof Uint8Array ? assert.fail('or this test proves nothing') : body;
  };
  const changeAll = () => {
    for (const { id: providerId } of [...living.fleet.byId.values()]) {
      const effects = [{ providerId, bump: 1, used: [] }];
      living.detach(effects);
      showEffects(living.fleet, { effects }, 1);
    }
  };
  const shown = Array.from(living.fleet.byId.values(), (provider) => new WeakRef(provider));
  const expected = textOfChunks(candidatesJson(living.fleet, request, search(living.fleet, request, options), 1039));
  const first = await open();
  changeAll();
  const second = await open();
  let isCutOff = false;
  const stream = streamedBody(first, () => {
    isCutOff = true;
  }).getReader();
  for (let chunk = 0; chunk < 3; chunk++) assert.ok((await stream.read()).value);
  // The fleet has fewer than 50,000 providers, and so two snapshots cannot keep all of them.
  changeAll();
  let more = await stream.read();
  for (; !more.done; more = await stream.read());
  assert.ok(isCutOff);
  assert.ok(textOfChunks(await Array.fromAsync(readChunks(second))) === expected, 'the other answer comes to its end');
  await setImmediate();
  collect();
  const left = shown.filter((each) => each.deref() !== undefined).length;
  assert.equal(left, 0, `${left} of ${count} providers are still in memory`);
});
