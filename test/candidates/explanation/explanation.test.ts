import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { conditionsOf } from '../../../src/api/candidates/conditions.ts';
import { parseCandidateRequest } from '../../../src/api/candidates/query.ts';
import { parseQuery } from '../../../src/rest/query_string.ts';
import { requestWith } from '../../../src/search/conditions.ts';
import type { Explanation } from '../../../src/search/explanation/explain.ts';
import { fleetOf, nodeAt, stockOf } from '../topology.ts';
import { anyCase } from './any_case.ts';
import { explained, figuresOf, latest } from './explained.ts';
import { fittingTrees, naiveFigures, naiveNearest, poolsOf, queriesByTheRules } from './naive_explanation.ts';
import { partsOf, queryOf } from './parts.ts';

/** How many random cases are tried; a long run may set more. */
const numRuns = Number(process.env.EXPLANATION_CASES ?? 400);

const nearestOf = ({ nearest }: Explanation) =>
  nearest.map(({ root, unmet }) => ({
    name: root.name,
    unmet: unmet.map(({ condition: { parameter, value }, treeFree, reason }) => ({
      parameter,
      value,
      treeFree,
      reason,
    })),
  }));

suite('explanation of a query', () => {
  test('each number of an explanation equals a query for candidates with the conditions dropped', async (t) => {
    const seen = new Map<string, number>();
    const count = (what: string, isSo: boolean) => seen.set(what, (seen.get(what) ?? 0) + Number(isSo));
    await fc.assert(
      fc.asyncProperty(anyCase, async ([topology, request]) => {
        const parts = partsOf(request);
        const text = queryOf(parts);
        const query = parseQuery(text);
        const parsed = parseCandidateRequest(query, latest);
        const conditions = conditionsOf(query, parsed);
        assert.deepEqual(requestWith(conditions), parsed);

        const explanation = explained(fleetOf(topology), text);
        assert.equal(explanation.complete, true);
        assert.equal(explanation.trees, topology.filter(({ parent }) => parent === undefined).length);
        assert.equal(explanation.pools, poolsOf(topology).length);
        assert.equal(explanation.fitting, fittingTrees(topology, parts).length, text);
        const figures = await naiveFigures(queriesByTheRules(topology), parts);
        assert.deepEqual(figuresOf(explanation), figures, text);
        const nearest = naiveNearest(topology, parts);
        assert.deepEqual(
          nearestOf(explanation),
          nearest.map(({ name, unmet }) => ({ name, unmet })),
          text,
        );

        count('fits somewhere', (explanation.fitting ?? 0) > 0);
        count('fits nowhere', explanation.fitting === 0);
        count('would fit without one', explanation.fitting === 0 && figures.some(({ without }) => without > 0));
        count('would fit with less', explanation.fitting === 0 && figures.some(({ largest }) => (largest ?? 0) > 0));
        for (const { unmet } of nearest) for (const { reason } of unmet) count(reason, true);
        count('some trees only share', explanation.pools > 0);
        count('several groups', request.groups.length > 1);
        count(
          'a group without resources',
          request.groups.some(({ resources }) => resources.size === 0),
        );
      }),
      { numRuns },
    );
    t.diagnostic(JSON.stringify(Object.fromEntries(seen)));
    for (const [what, times] of seen) assert.ok(times > numRuns / 200, `${what}: ${times} of ${numRuns} cases`);
  });

  test('a query about one tree is explained as if there was no other tree', () => {
    fc.assert(
      fc.property(anyCase, ([topology, request]) => {
        const text = queryOf(partsOf(request));
        const fleet = fleetOf(topology);
        const ofAll = explained(fleet, text);
        const ofEach = fleet.roots.map((tree) => explained(fleet, text, { tree }));
        const sum = (numberOf: (of: Explanation) => number | null | undefined) =>
          ofEach.reduce((total, each) => total + (numberOf(each) ?? 0), 0);
        assert.equal(
          sum(({ trees }) => trees),
          ofAll.trees,
        );
        assert.equal(
          sum(({ fitting }) => fitting),
          ofAll.fitting,
        );
        assert.equal(
          sum(({ nearest }) => nearest.length),
          ofAll.nearest.length,
        );
        for (const [index, figures] of ofAll.conditions.entries()) {
          for (const name of ['alone', 'left', 'without'] as const) {
            assert.equal(
              sum(({ conditions }) => conditions[index]?.[name]),
              figures[name] ?? 0,
            );
          }
          const largest = ofEach.map(({ conditions }) => conditions[index]?.largest ?? 0);
          assert.equal(Math.max(...largest), figures.largest ?? 0);
        }
      }),
      { numRuns: numRuns / 4 },
    );
  });

  test('the nearest trees come first: fewest unmet conditions, then the smallest shortfall, then by name', () => {
    const topology = [4, 6, 7, 6, 2].map((vcpus, index) => nodeAt(index, { stock: { VCPU: stockOf(vcpus) } }));
    const { nearest } = explained(fleetOf([...topology, nodeAt(5)]), 'resources=VCPU:8', { nearest: 3 });
    assert.deepEqual(
      nearest.map(({ root, unmet: [unmet] }) => [root.name, unmet?.asked, unmet?.free, unmet?.reason]),
      [
        ['provider 2', 8, 7, 'capacity'],
        ['provider 1', 8, 6, 'capacity'],
        ['provider 3', 8, 6, 'capacity'],
      ],
    );
  });

  test('a number that takes too much work is undefined, and the other numbers are right', () => {
    let incomplete = 0;
    let known = 0;
    fc.assert(
      fc.property(anyCase, fc.integer({ min: 0, max: 400 }), ([topology, request], steps) => {
        const text = queryOf(partsOf(request));
        const fleet = fleetOf(topology);
        const whole = explained(fleet, text);
        const part = explained(fleet, text, { steps });
        assert.deepEqual(explained(fleet, text, { steps }), part, 'the same again');
        const pairs = [
          [part.fitting, whole.fitting],
          ...part.conditions.flatMap((figures, index) =>
            (['alone', 'left', 'without', 'largest'] as const).map((name) => [
              figures[name],
              whole.conditions[index]?.[name],
            ]),
          ),
        ];
        for (const [number, expected] of pairs) {
          if (number !== undefined) assert.equal(number, expected);
          known += Number(typeof number === 'number' && !part.complete);
        }
        const isKnown = pairs.every(([number]) => number !== undefined);
        assert.ok(part.complete ? isKnown : !isKnown || part.nearest.length < whole.nearest.length);
        incomplete += Number(!part.complete);
      }),
      { numRuns },
    );
    assert.ok(
      incomplete > numRuns / 20 && known > numRuns / 20,
      `${incomplete} incomplete, ${known} known numbers of them`,
    );
  });

  test('an explanation is complete only if the budget was enough to search the nearest trees', () => {
    const fleet = fleetOf([0, 1, 2].map((index) => nodeAt(index, { stock: { VCPU: stockOf(1) } })));
    const text = 'resources=VCPU:2&required=CUSTOM_RARE';
    const whole = explained(fleet, text);
    assert.equal(whole.nearest.length, 3);
    let lacking = 0;
    for (let steps = 0; ; steps += 1) {
      assert.ok(steps < 1000);
      const { complete, nearest, fitting, conditions } = explained(fleet, text, { steps });
      if (complete) break;
      const numbers = [
        fitting,
        ...conditions.flatMap(({ alone, left, without, largest }) => [alone, left, without, largest]),
      ];
      lacking += Number(!numbers.includes(undefined) && nearest.length < whole.nearest.length);
    }
    assert.ok(lacking > 0, 'with some budgets all numbers are known, and not all of the nearest trees');
  });

  test('eight groups on eight children, which do not fit but seem to, take no more work than granted', (t) => {
    const children = Array.from({ length: 8 }, (_, index) =>
      nodeAt(1 + index, { parent: 0, stock: { SRIOV_NET_VF: stockOf(4) } }),
    );
    const fleet = fleetOf([nodeAt(0), ...children]);
    for (const amounts of [
      [3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2],
      [4, 4, 4, 4, 4, 4, 4, 4],
      [3, 3, 3, 3, 3, 3, 3, 3, 2],
    ]) {
      const groups = amounts.map((amount, index) => `resources${index + 1}=SRIOV_NET_VF:${amount}`);
      const before = performance.now();
      const explanation = explained(fleet, `${groups.join('&')}&group_policy=none`);
      const ms = performance.now() - before;
      t.diagnostic(
        `${amounts.join(' ')}: ${ms.toFixed(0)} ms, complete ${explanation.complete}, ${explanation.fitting} fit`,
      );
      assert.equal(explanation.conditions.length, amounts.length);
      assert.ok(explanation.complete || explanation.conditions.some(({ largest }) => largest === undefined));
    }
  });
});
