/** A claim whose wait DELETE /waiting has ended, while its process has not got the news of it yet, and checks its rows. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { enterWaiting, removeWaiting } from '../../db/statements/claims/waiting.ts';
import { openWaitingLines } from '../../src/claims/waiting/lines.ts';
import { newWaiter } from '../../src/claims/waiting/waiter.ts';
import { ApiError } from '../../src/request/errors.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';

test('is not stored again, and its request learns that the wait was ended', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const process = randomUUID();
      const projectId = 'web';
      const line = 'a';
      const waiter = newWaiter(
        { consumers: [], inventories: [] },
        {
          waitMs: 60_000,
          line,
          owner: { projectId, userId: 'ada' },
          client: 'ada',
          gone: new AbortController().signal,
          askAgain: () => Promise.reject(new Error('it is not its turn')),
        },
        {
          index: 0,
          precedence: {
            isCancelled: () => false,
            isBehind: () => false,
            noteHeldUp: () => {},
            waitingRow: { claim: '', process, projectId, line, isStored: true },
          },
          leave: () => {},
          resolve: () => {},
          reject: () => {},
        },
      );
      const { key } = waiter;
      const row = { claim: key, consumers: [randomUUID()], names: null, projectId, userId: 'ada', line };
      const times = { waitedMs: 0, waitMs: 60_000, askedAtMs: Date.now(), waitsFor: 'room', condition: '' } as const;
      const [entered] = await enterWaiting(database, process, [{ ...row, ...times }]);
      assert.ok(entered);
      Object.assign(waiter, { isStored: true, mayHaveRow: true, state: 'in line', askedAtMs: entered.askedAtMs });

      const { promise: delivered, resolve: deliver } = Promise.withResolvers<void>();
      let isRead = false;
      /** The answer to the first transaction, which reads the news, comes late. */
      const late: Database['transaction'] = async (statements, wait) => {
        if (isRead) return database.transaction(statements, wait);
        const answer = await database.transaction(statements, wait);
        isRead = true;
        await delivered;
        return answer;
      };
      const storedAgain: unknown[] = [];
      const ended: unknown[] = [];
      const lines = openWaitingLines(
        { ...database, transaction: late },
        process,
        {
          waiters: new Map([[key, waiter]]),
          seats: { size: 1 },
          rows: { enter: (each) => storedAgain.push(each), entered: async () => {} },
        },
        {
          onTurn: () => {},
          onMayFit: () => {},
          onDoubtful: () => {},
          onReentering: () => {},
          onEnded: (_waiter, error) => ended.push(error),
        },
      );
      lines.enter(waiter, { number: entered.number, isFirst: false });
      assert.equal(await removeWaiting(database, [{ claim: key, projectId, line }]), 1);
      lines.readNews();
      await until('the news are read', () => isRead);
      await lines.keepRows();
      assert.deepEqual(storedAgain, []);
      deliver();
      await until('the wait is ended', () => ended.length > 0);
      const [error] = ended;
      assert.ok(error instanceof ApiError && error.status === 409, String(error));
      assert.match(error.message, /ended by DELETE \/waiting/);
    } finally {
      await database.close();
    }
  });
});
