/** Questions about a query that are answered in pieces, while the fleet changes in their pauses: each answer is of one snapshot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { conditionsOf } from '../../src/api/candidates/conditions.ts';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import type { LivingFleet } from '../../src/fleet/model/fleet.ts';
import type { Provider } from '../../src/fleet/model/provider.ts';
import { ApiError } from '../../src/request/errors.ts';
import { atOnce, inPiecesOfOneSnapshot, type Pieces, type Turns } from '../../src/request/turns.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import { requestWith } from '../../src/search/conditions.ts';
import { countPlacements } from '../../src/search/count/count.ts';
import { explain } from '../../src/search/explanation/explain.ts';
import { changeFleet } from '../fleet/change_fleet.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { turnsThatEnd } from '../support/chunks.ts';
import { anyCase } from './explanation/any_case.ts';
import { latest } from './explanation/explained.ts';
import { partsOf, queryOf } from './explanation/parts.ts';
import { anyChange, type Change } from './random_change.ts';
import { rowsOf } from './topology.ts';

/** An answer with the UUIDs of the providers instead of the providers. */
const plain = (answer: unknown): unknown =>
  JSON.parse(
    JSON.stringify(answer, (_, value: unknown) =>
      typeof value === 'object' && value !== null && 'uuid' in value && 'tree' in value
        ? // Of all that is in an answer, only providers have a tree.
          (value as Provider).uuid
        : value instanceof Set
          ? [...value]
          : value,
    ),
  );

const usedIn = ({ fleet }: LivingFleet): number =>
  fleet.byId.values().reduce((sum, { inventories }) => inventories.reduce((more, { used }) => more + used, sum), 0);

/** What a question comes to if the fleet changes in each pause. */
function answerDuringChanges<Answer>(
  living: LivingFleet,
  rows: AllRows,
  ask: (turns: Turns) => Pieces<Answer>,
  { pauses, list }: { readonly pauses: readonly boolean[]; readonly list: readonly Change[] },
): { readonly answer: Answer; readonly changed: number } {
  const [isOver, left] = [[...pauses], [...list]];
  const turns = turnsThatEnd(() => {
    isOver.push(isOver.shift() ?? false);
    return isOver.at(-1) ?? false;
  });
  let now = rows;
  let snapshot: ReturnType<LivingFleet['hold']> | undefined;
  const work = ask(turns);
  for (;;) {
    const before = usedIn(living);
    const step = work.next();
    assert.equal(usedIn(living), before, 'no other request sees what a count places');
    if (step.done) {
      snapshot?.end();
      return { answer: step.value, changed: list.length - left.length };
    }
    snapshot ??= living.hold(() => assert.fail('so little must be kept to the end'));
    const change = left.shift();
    if (change !== undefined) now = changeFleet(living, now, change);
  }
}

test('whatever changes in the pauses of a question, its answer shows the snapshot of its beginning', () => {
  const changed = { explanations: 0, counts: 0 };
  fc.assert(
    fc.property(
      anyCase,
      fc.array(anyChange, { minLength: 1, maxLength: 12 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
      ([topology, request], list, pauses) => {
        const query = parseQuery(queryOf(partsOf(request)));
        const conditions = conditionsOf(query, parseCandidateRequest(query, latest));
        const rows = rowsOf(topology);
        const still = createFleet(rows).fleet;

        let living = createFleet(rows);
        const explained = answerDuringChanges(
          living,
          rows,
          (turns) => explain(living.fleet, conditions, { nearest: 5, turns }),
          { pauses, list },
        );
        const explanation = atOnce(explain(still, conditions, { nearest: 5 }));
        assert.deepEqual(plain(explained.answer), plain(explanation));
        changed.explanations += explained.changed;

        living = createFleet(rows);
        const options = { max: 1000, top: 5 };
        const counted = answerDuringChanges(
          living,
          rows,
          (turns) => countPlacements(living.fleet, requestWith(conditions), { ...options, turns }),
          { pauses, list },
        );
        const count = atOnce(countPlacements(still, requestWith(conditions), options));
        assert.deepEqual(plain(counted.answer), plain(count));
        changed.counts += counted.changed;
      },
    ),
    { numRuns: 600 },
  );
  assert.ok(changed.explanations > 600 && changed.counts > 300, JSON.stringify(changed));
});

test('a question whose snapshot cannot be held any longer is answered by a 503', async () => {
  function* work(): Pieces<string> {
    yield undefined;
    return 'half of one snapshot and half of another';
  }
  let ends = 0;
  const hold = (giveUp: () => void) => {
    giveUp();
    return {
      end: () => {
        ends += 1;
      },
    };
  };
  await assert.rejects(
    inPiecesOfOneSnapshot(
      work(),
      hold,
      turnsThatEnd(() => true),
    ),
    (error) => error instanceof ApiError && error.status === 503,
  );
  assert.equal(ends, 1);
});
