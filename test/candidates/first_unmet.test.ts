import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionsOf } from '../../src/api/candidates/conditions.ts';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import { allTrees } from '../../src/search/anchors.ts';
import { firstUnmet } from '../../src/search/place.ts';
import { latest } from './explanation/explained.ts';
import { fleetOf, nodeAt, stockOf } from './topology.ts';

const fleet = fleetOf([0, 1].map((index) => nodeAt(index, { stock: { VCPU: stockOf(4) } })));
const query = parseQuery('resources=VCPU:1&required=CUSTOM_RARE');
const conditions = conditionsOf(query, parseCandidateRequest(query, latest));
const unmetWith = (steps: number) => firstUnmet(fleet, conditions, { allowed: allTrees, work: { steps, forLists: 0 } });

test('the first condition that leaves no tree is named', () => {
  assert.equal(unmetWith(1_000_000)?.value, 'CUSTOM_RARE');
});

test('no condition is named where the budget is used up at an earlier one', () => {
  assert.equal(unmetWith(0), undefined);
});
