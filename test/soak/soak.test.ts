/** A short soak: `make soak` is the long one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engines } from '../engines.ts';
import { seedFor } from '../races/random.ts';
import { soak } from './soak.ts';

const seconds = 25;

for (const engine of engines) {
  test(`nothing is lost, given twice or stale under faults, on ${engine}`, async (t) => {
    const ledger = await soak(engine, seconds, seedFor(t));
    for (const line of ledger.report()) t.diagnostic(line);
    assert.deepEqual(ledger.findings, []);
    assert.deepEqual(ledger.unexpected, []);
    assert.ok(ledger.histories.checked > ledger.histories.undecided);
    assert.ok(ledger.faults.size >= 3);
  });
}
