import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changes as computeChanges, computeService, since as sinceOfCompute } from '../../src/compute/versions.ts';
import { changes, placementService, since } from '../../src/rest/microversions.ts';
import { bySince, sinceOf, upTo, versionText, versionTexts } from '../../src/rest/versions.ts';

test('each version of Placement has one name, without gaps from 1.0 on, in the order of the list', () => {
  const minors = Object.values(changes).map(([minor]) => minor);
  assert.deepEqual(
    minors,
    minors.map((_, index) => index),
  );
  assert.equal(placementService.minMinor, 0);
  assert.equal(placementService.maxMinor, minors.length - 1);
});

test('changes of Compute are listed from the oldest to the newest', () => {
  const minors = Object.values(computeChanges).map(([minor]) => minor);
  assert.deepEqual(
    minors,
    minors.toSorted((a, b) => a - b),
  );
  assert.deepEqual([computeService.minMinor, computeService.maxMinor], [1, 75]);
});

test('a name stands for the number beside it', () => {
  assert.deepEqual(sinceOf({ a: [3, 'A.'], b: [7, 'B.'] }), { a: 3, b: 7 });
  assert.equal(since.consumerGenerations, 28);
  assert.equal(sinceOfCompute.uuids, 53);
});

test('the schema in force is the newest schema that the version has', () => {
  const schemas = [
    { since: 5, schema: 'new' },
    { since: 2, schema: 'old' },
  ] as const;
  assert.deepEqual(
    [2, 4, 5, 9].map((version) => bySince(schemas, version)),
    ['old', 'old', 'new', 'new'],
  );
  assert.throws(() => bySince(schemas, 1), /no schema for minor version 1/);
});

test('a service with a smaller range has fewer versions', () => {
  const service = upTo({ type: 'x', major: 1, minMinor: 1, maxMinor: 4 }, '1.3');
  assert.deepEqual(versionTexts(service), ['1.1', '1.2', '1.3']);
  assert.equal(versionText(service, 3), '1.3');
});
