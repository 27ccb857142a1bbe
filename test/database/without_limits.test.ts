/** Work without time limits on a connection of the requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Connection, withoutLimits } from '../../db/engine/connection.ts';

/** What is sent for these statements, one after the other, and whether each may take any time. */
async function sentFor(texts: readonly string[], timeoutMs: number): Promise<readonly string[]> {
  const sent: string[] = [];
  const connection: Connection = {
    send: async (text, _values, { isUnlimited = false } = {}) => {
      sent.push(`${text.replace(/;.*/s, '; ...')}${isUnlimited ? '' : ' (limited)'}`);
      return { rows: [], rowCount: 0, command: '', oid: 0, fields: [] };
    },
    cork: () => {},
    uncork: () => {},
    release: () => {},
  };
  const { send } = withoutLimits(connection, timeoutMs);
  for (const text of texts) await send(text);
  return sent;
}

for (const end of ['commit', 'rollback']) {
  test(`the limits are lifted for a transaction, and after its ${end} for each statement`, async () => {
    assert.deepEqual(await sentFor(['begin', 'select 1', end, 'select 2', 'select 3'], 7), [
      'begin; ...',
      'select 1',
      end,
      ...['select 2', 'select 3'].flatMap((text) => ['set statement_timeout = 0', text, 'set statement_timeout = 7']),
    ]);
  });
}

test('where there is no limit, none is lifted or set', async () => {
  assert.deepEqual(await sentFor(['select 1'], 0), ['select 1']);
});
