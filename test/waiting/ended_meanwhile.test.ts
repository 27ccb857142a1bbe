/** A claim whose wait DELETE /waiting has ended, while its process does not get the news of it in time, or not at all. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { enterWaiting, fetchWaitingNews, removeWaiting } from '../../db/statements/claims/waiting.ts';
import { openWaitingLines, type WaitingLines } from '../../src/claims/waiting/lines.ts';
import { openWaitingRows } from '../../src/claims/waiting/rows.ts';
import type { Waiter } from '../../src/claims/waiting/waiter.ts';
import type { ApiError } from '../../src/request/errors.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { newTestWaiter } from './new_waiter.ts';

/** The lines of a process with one claim, whose wait is ended in the database. */
type Scene = {
  readonly waiter: Waiter;
  readonly lines: WaitingLines;
  /** What happens to the answer to the first read of news, after its commit. */
  answered: () => Promise<void>;
  /** How many times news were read, with or without an answer. */
  reads: number;
  /** Whether the claim was stored again, or may be written. */
  isRevived: boolean;
  readonly ended: ApiError[];
};

/** @param line the line of the claim; null without one */
const withEndedWait = async (line: string | null, run: (scene: Scene) => Promise<void>): Promise<void> => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const process = randomUUID();
      const projectId = 'web';
      const waiter = newTestWaiter(process, line);
      const { key } = waiter;
      const row = {
        claim: key,
        consumers: [randomUUID()],
        names: null,
        projectId,
        userId: 'ada',
        otherOwners: [],
        line,
      };
      const times = { waitedMs: 0, waitMs: 60_000, askedAtMs: Date.now(), waitsFor: 'room', condition: '' } as const;
      const [entered] = await enterWaiting(database, process, [{ ...row, ...times }]);
      assert.ok(entered);
      Object.assign(waiter, { isStored: true, mayHaveRow: true, state: 'in line', askedAtMs: times.askedAtMs });

      const transaction: Database['transaction'] = async (statements, wait) => {
        const answer = await database.transaction(statements, wait);
        scene.reads += 1;
        if (scene.reads === 1) await scene.answered();
        return answer;
      };
      const waiters = new Map([[key, waiter]]);
      const lines = openWaitingLines(
        { ...database, transaction },
        process,
        {
          waiters,
          seats: { size: 1 },
          rows: {
            enter: () => {
              scene.isRevived = true;
            },
          },
        },
        {
          onTurn: () => {},
          onMayFit: () => {
            scene.isRevived = true;
          },
          onDoubtful: () => {},
          onReentering: () => {},
          onEnded: ({ key: endedKey }, error) => {
            waiters.delete(endedKey);
            scene.ended.push(error);
          },
        },
      );
      const scene: Scene = { waiter, lines, answered: async () => {}, reads: 0, isRevived: false, ended: [] };
      if (line !== null) lines.enter(waiter, { number: entered.number, isFirst: false });
      assert.equal(await removeWaiting(database, [{ claim: key, projectId, line }]), 1);
      await run(scene);
    } finally {
      await database.close();
    }
  });
};

const assertEnded = async (scene: Scene): Promise<void> => {
  await until('the wait is ended, or goes on', () => scene.ended.length > 0 || scene.isRevived);
  assert.equal(scene.isRevived, false, 'the claim waits again');
  const [error] = scene.ended;
  assert.equal(error?.status, 409, String(error));
  assert.match(error.message, /ended by DELETE \/waiting/);
};

test('is not stored again while the news are on their way, and its request learns that the wait was ended', async () => {
  await withEndedWait('a', async (scene) => {
    const { promise: delivered, resolve: deliver } = Promise.withResolvers<void>();
    scene.answered = () => delivered;
    scene.lines.readNews();
    await until('the news are read', () => scene.reads > 0);
    await scene.lines.keepRows();
    assert.equal(scene.isRevived, false);
    deliver();
    await assertEnded(scene);
  });
});

for (const [what, line] of [
  ['the first of its line', 'a'],
  ['without a line, whose row is in doubt', null],
] as const) {
  test(`${what}: is not stored again after the connection broke with the news`, async () => {
    await withEndedWait(line, async (scene) => {
      scene.answered = () => Promise.reject(new Error('The connection broke.'));
      scene.lines.checkTurn(scene.waiter);
      await until('the news are lost', () => scene.reads > 0);
      scene.lines.checkTurn(scene.waiter);
      await assertEnded(scene);
    });
  });
}

test('a claim that was stored without an answer, and ended, does not wait again when it is stored once more', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const [process, projectId] = [randomUUID(), 'web'];
      const row = {
        claim: 'a',
        consumers: [randomUUID()],
        names: null,
        projectId,
        userId: 'ada',
        otherOwners: [],
        line: null,
      };
      const claim = {
        ...row,
        waitedMs: 0,
        waitMs: 60_000,
        askedAtMs: Date.now(),
        waitsFor: 'room',
        condition: '',
      } as const;
      await enterWaiting(database, process, [claim]);
      assert.equal(await removeWaiting(database, [row]), 1);
      await enterWaiting(database, process, [claim]);
      assert.deepEqual(await fetchWaitingNews(database, process, []), [
        { claim: 'a', what: 'removed', askedAtMs: claim.askedAtMs },
      ]);
      await enterWaiting(database, process, [{ ...claim, askedAtMs: claim.askedAtMs + 1 }]);
      assert.deepEqual(await fetchWaitingNews(database, process, ['a']), [
        { claim: 'a', what: 'first', askedAtMs: null },
      ]);
    } finally {
      await database.close();
    }
  });
});

test('a claim is stored once more with the time of its request', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const waiter = newTestWaiter(randomUUID(), null);
      const sent: unknown[] = [];
      const transaction: Database['transaction'] = async (statements, wait) => {
        await database.transaction(statements, wait);
        sent.push(waiter.askedAtMs);
        await new Promise((resolve) => setTimeout(resolve, 2));
        throw new Error('The connection broke.');
      };
      const none = () => {};
      const rows = openWaitingRows({ ...database, transaction }, randomUUID(), {
        isTaken: () => false,
        onEntered: none,
        onOlder: none,
        onFailed: none,
        onLeft: none,
      });
      for (const times of [1, 2]) {
        rows.enter(waiter);
        await until('it is sent', () => sent.length === times);
        await rows.settled();
      }
      assert.equal(typeof sent[0], 'number');
      assert.equal(sent[1], sent[0]);
    } finally {
      await database.close();
    }
  });
});
