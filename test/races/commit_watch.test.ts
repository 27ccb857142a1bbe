/** The watch on the answers to writes, where the server and its own question answer in an unlucky order, and its times. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { type CommitWatch, watchCommits } from '../../db/engine/commit_watch.ts';
import { CommitsUnconfirmed } from '../../db/engine/failures.ts';
import { until } from '../support/until.ts';

const write = 'insert into traits default values';

/** A watch whose questions the test answers, and a connection whose answer does not come. */
function watchOne({ statementTimeoutMs = 60_000, graceMs = 0 } = {}) {
  const questions: PromiseWithResolvers<boolean>[] = [];
  const watch: CommitWatch = watchCommits({
    isConfirming: () => {
      const question = Promise.withResolvers<boolean>();
      questions.push(question);
      return question.promise;
    },
    statementTimeoutMs,
    graceMs,
  });
  const answer = Promise.withResolvers<pg.QueryResult>();
  let isBroken = false;
  let kept = 0;
  const breakOff = (): void => {
    isBroken = true;
    answer.reject(new Error('broken off'));
  };
  const keepUntil = (): void => {
    kept += 1;
  };
  const watched = watch.watch({ keepUntil, breakOff }, answer.promise);
  watched.catch(() => {}); // some tests await it
  return { watch, questions, answer, watched, isBroken: () => isBroken, kept: () => kept };
}

const result: pg.QueryResult = { command: 'INSERT', rowCount: 1, oid: 0, fields: [], rows: [] };

test('a write is sent immediately where the server reports only after all its answers that commits were unconfirmed', async () => {
  const { watch, questions, answer, watched } = watchOne();
  await until('the server is asked', () => questions.length === 1);
  answer.resolve(result);
  await watched;
  questions[0]?.resolve(false);
  // The watch hears it, and its timer, which could end a wait once, does not come before the write.
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  // Without an answer that is missing, nothing would ever end its wait.
  assert.equal(watch.clearance([write]), undefined);
});

for (const isKnown of [true, false]) {
  test(`the end breaks off a write that waits for a standby, which is known ${isKnown ? 'before' : 'afterwards'}`, async () => {
    const { watch, questions, isBroken } = watchOne();
    await until('the server is asked', () => questions.length === 1);
    if (isKnown) {
      questions[0]?.resolve(false);
      await until('it is known', () => watch.isUnconfirmed());
    }
    watch.close();
    assert.equal(isBroken(), isKnown);
    questions[0]?.resolve(false);
    await until('it is broken off', isBroken);
  });
}

/** Mocks the clock of a watch. @returns lets time pass, in steps of 100 ms; the server answers each question at once */
function clockOf({
  mock,
}: TestContext): (one: ReturnType<typeof watchOne>, ms: number, isConfirming: boolean | Error) => Promise<void> {
  let nowMs = 1_000_000;
  mock.method(performance, 'now', () => nowMs);
  mock.timers.enable({ apis: ['setInterval'] });
  return async ({ questions }, ms, isConfirming) => {
    for (let passed = 0; passed < ms; passed += 100) {
      nowMs += 100;
      mock.timers.tick(100);
      for (const { resolve, reject } of questions.splice(0)) {
        if (isConfirming instanceof Error) reject(isConfirming);
        else resolve(isConfirming);
      }
      await setImmediate();
    }
  };
}

/** Lets a write wait for its clearance. @returns what has become of it */
function waitOf(watch: CommitWatch): () => string {
  let outcome = 'waits';
  watch.clearance([write])?.then(
    () => {
      outcome = 'is sent';
    },
    () => {
      outcome = 'is refused';
    },
  );
  return () => outcome;
}

test('writes wait for half of the time limit until commits are confirmed again, and are then refused', async (t) => {
  const pass = clockOf(t);
  const one = watchOne({ statementTimeoutMs: 2_000 });
  const { watch } = one;
  await pass(one, 200, false);
  assert.equal(watch.isUnconfirmed(), false);
  await pass(one, 100, false);
  assert.equal(watch.isUnconfirmed(), true);
  assert.equal(watch.clearance(['select 1']), undefined);
  const first = waitOf(watch);
  await pass(one, 300, false);
  await pass(one, 200, new Error('the server does not answer'));
  assert.equal(first(), 'waits');
  await pass(one, 100, true);
  assert.equal(first(), 'is sent');
  assert.equal(watch.clearance([write]), undefined);
  await pass(one, 100, false);
  const second = waitOf(watch);
  await pass(one, 1_000, false);
  assert.deepEqual([second(), watch.refusalOf(write)], ['waits', undefined]);
  await pass(one, 100, false);
  assert.equal(second(), 'is refused');
  assert.throws(() => watch.clearance([write]), CommitsUnconfirmed);
  assert.ok(watch.refusalOf(write));
  assert.equal(watch.refusalOf('select 1'), undefined);
  await pass(one, 100, true);
  assert.equal(watch.refusalOf(write), undefined);
  assert.equal(watch.clearance([write]), undefined);
});

test('a write without an answer fails in its time, and its connection is kept while the server waits for a standby', async (t) => {
  const pass = clockOf(t);
  const one = watchOne({ statementTimeoutMs: 1_000, graceMs: 500 });
  let failure: unknown;
  one.watched.catch((error: unknown) => {
    failure = error;
  });
  await pass(one, 900, false);
  assert.deepEqual([one.kept(), failure], [0, undefined]);
  await pass(one, 1_000, false);
  assert.equal(one.kept(), 1);
  assert.ok(failure instanceof CommitsUnconfirmed);
  assert.equal(one.isBroken(), false);
  await pass(one, 100, true);
  await pass(one, 100, true);
  assert.equal(one.isBroken(), true);
});

test('while commits are unconfirmed, a write that timed out at a lock failed for that; an answer confirms them', async (t) => {
  const pass = clockOf(t);
  const one = watchOne();
  const { watch, answer } = one;
  const send = (sent: Promise<pg.QueryResult>) => watch.watch({ keepUntil: () => {}, breakOff: () => {} }, sent);
  const timedOut = () => Promise.reject(Object.assign(new Error('late'), { severity: 'ERROR', code: '57014' }));
  await assert.rejects(send(timedOut()), /late/);
  await pass(one, 300, false);
  await assert.rejects(send(timedOut()), CommitsUnconfirmed);
  const waits = waitOf(watch);
  void send(new Promise(() => {}));
  answer.resolve(result);
  await setImmediate();
  await pass(one, 100, false);
  assert.equal(waits(), 'is sent');
});

test('at the end a connection that was kept is closed at once, although commits are confirmed again', async (t) => {
  const pass = clockOf(t);
  const one = watchOne({ statementTimeoutMs: 1_000, graceMs: 60_000 });
  await pass(one, 1_000, false);
  await pass(one, 200, true);
  assert.deepEqual([one.kept(), one.isBroken()], [1, false]);
  one.watch.close();
  assert.equal(one.isBroken(), true);
});

test('the watch ends with the last answer, also a failure, and begins again with the next write', async (t) => {
  const pass = clockOf(t);
  const one = watchOne();
  one.answer.reject(new Error('the connection broke'));
  await setImmediate();
  await pass(one, 500, false);
  assert.equal(one.watch.isUnconfirmed(), false);
  void one.watch.watch({ keepUntil: () => {}, breakOff: () => {} }, new Promise(() => {}));
  await pass(one, 300, false);
  assert.equal(one.watch.isUnconfirmed(), true);
});

test('statements that write, lock or commit are watched, and no others', () => {
  const { watch, answer } = watchOne();
  answer.resolve(result);
  const watched = [
    'commit',
    'with a as (insert  into b values (1)) select',
    'update a set b = 1',
    'delete from a',
    'truncate a',
    '\n lock table a',
    'select from a for update',
    'select from a for no key update',
  ];
  for (const text of watched) assert.ok(watch.isWatched(text), text);
  const others = ['begin', 'select a from b for key share', 'select pg_advisory_xact_lock(1)', 'set lock_timeout = 0'];
  for (const text of others) assert.ok(!watch.isWatched(text), text);
});

test('a write that only takes long is broken off after its time and the grace, and without a time limit never', async (t) => {
  const pass = clockOf(t);
  const one = watchOne({ statementTimeoutMs: 1_000, graceMs: 500 });
  await pass(one, 1_500, true);
  assert.equal(one.isBroken(), false);
  await pass(one, 100, true);
  assert.equal(one.isBroken(), true);
  const endless = watchOne({ statementTimeoutMs: 0, graceMs: 500 });
  await pass(endless, 2_000, true);
  assert.deepEqual([endless.isBroken(), endless.kept()], [false, 0]);
  assert.equal(endless.watch.clearance([write]), undefined);
  await pass(endless, 100, false);
  const held = waitOf(endless.watch);
  await pass(endless, 5_000, false);
  assert.equal(held(), 'waits');
  await pass(endless, 100, false);
  assert.equal(held(), 'is refused');
});
