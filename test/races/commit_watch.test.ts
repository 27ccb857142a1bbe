/** The watch on the answers to writes, where the server and its own question answer in an unlucky order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { type CommitWatch, watchCommits } from '../../db/engine/commit_watch.ts';
import { until } from '../support/until.ts';

const write = 'insert into traits default values';

/** A watch whose questions the test answers, and a connection whose answer does not come. */
function watchOne() {
  const questions: PromiseWithResolvers<boolean>[] = [];
  const watch: CommitWatch = watchCommits({
    isConfirming: () => {
      const question = Promise.withResolvers<boolean>();
      questions.push(question);
      return question.promise;
    },
    statementTimeoutMs: 60_000,
    graceMs: 0,
  });
  const answer = Promise.withResolvers<pg.QueryResult>();
  let isBroken = false;
  const breakOff = (): void => {
    isBroken = true;
    answer.reject(new Error('broken off'));
  };
  const watched = watch.watch({ keepUntil: () => {}, breakOff }, answer.promise);
  watched.catch(() => {}); // some tests await it
  return { watch, questions, answer, watched, isBroken: () => isBroken };
}

const result: pg.QueryResult = { command: 'INSERT', rowCount: 1, oid: 0, fields: [], rows: [] };

test('a write is sent immediately where the server reports only after all its answers that commits were unconfirmed', async () => {
  const { watch, questions, answer, watched } = watchOne();
  await until('the server is asked', () => questions.length === 1);
  answer.resolve(result);
  await watched;
  questions[0]?.resolve(false);
  await setImmediate();
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
