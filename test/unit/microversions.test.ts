import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changes as computeChanges, computeService, since as sinceOfCompute } from '../../src/compute/versions.ts';
import { changes, placementService, since } from '../../src/placement/microversions.ts';
import { bySince, sinceOf, upTo, versionOfText, versionTexts } from '../../src/placement/versions.ts';

test('each version of Placement has one name, without gaps from 1.0 on, in the order of the list', () => {
  // 2.0 changes nothing: it is OpenStack's newest version.
  assert.deepEqual(
    Object.values(changes).map(([version]) => version),
    versionTexts(placementService).filter((version) => version !== '2.0'),
  );
  assert.deepEqual(placementService.ranges[0], { oldest: versionOfText('1.0'), newest: versionOfText('1.39') });
});

test('changes of Compute are listed from the oldest to the newest', () => {
  const versions = Object.values(computeChanges).map(([version]) => versionOfText(version));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  assert.deepEqual([versionTexts(computeService).at(0), versionTexts(computeService).at(-1)], ['2.1', '2.75']);
});

test('a name has the number of its version', () => {
  assert.deepEqual(sinceOf({ a: ['1.3', 'A.'], b: ['2.7', 'B.'] }), { a: 1003, b: 2007 });
  assert.equal(since.consumerGenerations, 1028);
  assert.equal(sinceOfCompute.uuids, 2053);
});

test('the schema in force is the newest schema that the version has', () => {
  const schemas = [
    { since: 2001, schema: 'new' },
    { since: 1002, schema: 'old' },
  ] as const;
  assert.deepEqual(
    [1002, 1039, 2000, 2001, 2009].map((version) => bySince(schemas, version)),
    ['old', 'old', 'old', 'new', 'new'],
  );
  assert.throws(() => bySince(schemas, 1001), /no schema for version 1\.1/);
});

test('a service with smaller ranges has fewer versions', () => {
  const first = { oldest: versionOfText('1.1'), newest: versionOfText('1.4') };
  const second = { oldest: versionOfText('2.0'), newest: versionOfText('2.3') };
  const service = { type: 'x', ranges: [first, second], defaultVersion: first.oldest } as const;
  assert.deepEqual(versionTexts(upTo(service, versionOfText('1.3'))), ['1.1', '1.2', '1.3']);
  assert.deepEqual(versionTexts(upTo(service, versionOfText('2.1'))), ['1.1', '1.2', '1.3', '1.4', '2.0', '2.1']);
});
