/** Why a consumer is gone that went more than once, for a client whose changes are read from the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import { consumersBit, goneBit, readChangedParts, termBit } from '../../db/fleet/changed_parts.ts';
import { withTwoConnections } from '../races/two_connections.ts';

test('of several rows about a consumer the last one holds, and of two at the same time the one about a term', () =>
  withTwoConnections(async ({ database, other }) => {
    const from = await readFleetSnapshot(database.kysely);
    const [released, term] = [consumersBit, consumersBit + termBit];
    const log = (uuid: string, parts: number, second: number) =>
      other.query(`insert into provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
        values (null, true, ${parts}, array['${uuid}'], now() + interval '${second} s')`);
    await other.query('begin');
    for (const [second, ...parts] of [
      [0, released, term, released],
      [1, term, released, term],
      [1, term, term, released],
    ] as const) {
      for (const [index, part] of parts.entries()) await log(`c${index}`, part, second);
    }
    await other.query('commit');
    const until = await readFleetSnapshot(database.kysely);
    const { changedParts } = await readChangedParts(database, from, until, { bits: consumersBit, most: 10 });
    assert.deepEqual(changedParts, [
      [null, null, 'c0', term | goneBit, null],
      [null, null, 'c1', term | goneBit, null],
      [null, null, 'c2', term | goneBit, null],
    ]);
    await log('c1', released, 2);
    const later = await readFleetSnapshot(database.kysely);
    const { changedParts: last } = await readChangedParts(database, from, later, { bits: consumersBit, most: 10 });
    assert.deepEqual(last?.[1], [null, null, 'c1', released | goneBit, null]);
  }));
