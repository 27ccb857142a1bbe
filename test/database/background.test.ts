/** Work in rounds beside the requests, and the parts of the service that work so. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely';
import { inBackground } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import { keepUp } from '../../db/engine/embedded.ts';
import { pageSize } from '../../db/statements/consumers/remove_ended.ts';
import type { Tables } from '../../db/tables.ts';
import { forgetFromTimeToTime, removeEndedConsumers } from '../../src/claims/deletions.ts';
import { keepHistory } from '../../src/claims/history.ts';
import { retireSilentServices } from '../../src/compute/heartbeats.ts';
import { pruneFromTimeToTime } from '../../src/fleet/keep/keeper.ts';
import { openIdWatch } from '../../src/metrics/id_watch.ts';
import { holdTime } from '../support/hold_time.ts';
import { until } from '../support/until.ts';

/** Lets time pass, as timers and `performance.now()` see it, and lets everything happen that does not wait for time. */
function timeOf(t: TestContext): (ms: number) => Promise<void> {
  const pass = holdTime(t);
  return async (ms) => {
    pass(ms);
    for (let iteration = 0; iteration < 20; iteration += 1) await nextIteration();
  };
}

/** Rounds of a minute, which end when the test says so. */
function roundsOfAMinute() {
  const underWay: PromiseWithResolvers<void>[] = [];
  const counts = { begun: 0, failed: 0 };
  const signals: AbortSignal[] = [];
  const stop = inBackground({
    everyMs: 60_000,
    failed: () => {
      counts.failed += 1;
    },
    round: (stopping) => {
      counts.begun += 1;
      signals.push(stopping);
      const round = Promise.withResolvers<void>();
      underWay.push(round);
      return round.promise;
    },
  });
  return { counts, signals, stop, end: () => underWay.shift()?.resolve(), fail: () => underWay.shift()?.reject('no') };
}

suite('work in the background', () => {
  test('begins after half an interval at the earliest, then once in each interval', async (t) => {
    const pass = timeOf(t);
    const { counts, end, stop } = roundsOfAMinute();
    await pass(29_999);
    assert.equal(counts.begun, 0);
    await pass(30_001);
    assert.equal(counts.begun, 1);
    for (const round of [2, 3, 4]) {
      end();
      await pass(0);
      await pass(60_000);
      assert.equal(counts.begun, round);
    }
    end();
    await stop();
  });

  test('has no second round while one runs; after a long one it goes on at the next multiple of the interval', async (t) => {
    const pass = timeOf(t);
    const { counts, end, stop } = roundsOfAMinute();
    await pass(60_000);
    await pass(150_000);
    assert.equal(counts.begun, 1);
    end();
    await pass(0);
    await pass(29_999);
    assert.equal(counts.begun, 1);
    await pass(1);
    assert.equal(counts.begun, 2);
    end();
    await stop();
  });

  test('reports a failure, and the next round comes', async (t) => {
    const pass = timeOf(t);
    const { counts, fail, end, stop } = roundsOfAMinute();
    await pass(60_000);
    fail();
    await pass(0);
    await pass(60_000);
    assert.deepEqual(counts, { begun: 2, failed: 1 });
    end();
    await stop();
  });

  test('signals the running round when it is stopped, waits for it, and begins no other', async (t) => {
    const pass = timeOf(t);
    const { counts, signals, end, stop } = roundsOfAMinute();
    await pass(60_000);
    let hasStopped = false;
    assert.equal(signals[0]?.aborted, false);
    const stopped = stop().then(() => {
      hasStopped = true;
    });
    await pass(600_000);
    assert.equal(signals[0]?.aborted, true);
    assert.equal(hasStopped, false);
    end();
    await stopped;
    await pass(600_000);
    assert.equal(counts.begun, 1);
  });

  test('begins no round when it is stopped before one, or between two', async (t) => {
    const pass = timeOf(t);
    const [early, late] = [roundsOfAMinute(), roundsOfAMinute()];
    await early.stop();
    await pass(60_000);
    late.end();
    await pass(0);
    await late.stop();
    await pass(600_000);
    assert.deepEqual([early.counts.begun, late.counts.begun], [0, 1]);
  });

  test('does not keep the process alive', async () => {
    const file = path.join(import.meta.dirname, '..', '..', 'db', 'engine', 'background.ts');
    const program = `import { inBackground } from '${file}'; inBackground({ everyMs: 2e9, failed() {}, async round() {} });`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { timeout: 60_000 });
  });
});

/** A database that answers no statement until the test says so, mostly by a failure. */
function unansweringDatabase() {
  const statements: PromiseWithResolvers<QueryResult<never>>[] = [];
  const counts = { rounds: 0 };
  const connection: DatabaseConnection = {
    executeQuery: () => {
      counts.rounds += 1;
      const statement = Promise.withResolvers<QueryResult<never>>();
      statements.push(statement);
      return statement.promise;
    },
    streamQuery: () => assert.fail('no statement is streamed'),
  };
  class Unanswering extends DummyDriver {
    override acquireConnection = async () => connection;
  }
  const kysely = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new Unanswering(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
  });
  // What is tested here sends its first statement by `kysely`, and uses nothing else of the database.
  const database = { kysely } as Database;
  const fail = () => statements.shift()?.reject(new Error('no answer'));
  /** Answers by rows, whose columns the caller knows. */
  const answer = (...rows: readonly object[]) => statements.shift()?.resolve({ rows: [...rows] as never[] });
  return { database, counts, fail, answer };
}

const reported = {
  logger: { info: () => {}, warn: () => {} },
  outages: { notice: () => false, answered: () => {} },
};

for (const [what, start] of [
  ['pruning of the log', (database) => pruneFromTimeToTime(database, reported, 600_000)],
  ['retirement of services', (database) => retireSilentServices(database, 60, reported)],
  ['removal of ended terms', (database) => removeEndedConsumers(database, reported)],
  ['forgetting of former consumers', (database) => forgetFromTimeToTime(database, reported, 600)],
  ['watch over the ids', (database) => openIdWatch(database, reported).close],
  ['upkeep of the embedded database', (database) => keepUp(database.kysely, () => {})],
] as const satisfies readonly (readonly [string, (database: Database) => () => Promise<void>])[]) {
  test(`the ${what} sends nothing while its last statement is unanswered, and ends only after it`, async (t) => {
    const pass = timeOf(t);
    const { database, counts, fail } = unansweringDatabase();
    const stop = start(database);
    for (let interval = 0; interval < 5; interval += 1) await pass(600_000);
    assert.equal(counts.rounds, 1);
    fail();
    for (let interval = 0; interval < 2; interval += 1) await pass(600_000);
    assert.equal(counts.rounds, 2, 'the next round comes');
    let hasStopped = false;
    void stop().then(() => {
      hasStopped = true;
    });
    await pass(600_000);
    assert.equal(hasStopped, false);
    fail();
    await pass(600_000);
    assert.equal(hasStopped, true);
    assert.equal(counts.rounds, 2);
  });
}

test('former consumers are forgotten page by page, twice in the time that they are kept, until it is stopped', async (t) => {
  const pass = timeOf(t);
  const { database, counts, answer } = unansweringDatabase();
  const stop = forgetFromTimeToTime(database, reported, 600);
  await pass(149_999);
  assert.equal(counts.rounds, 0);
  await pass(150_001);
  assert.equal(counts.rounds, 1);
  const full = { last: 'uuid', count: pageSize };
  answer(full);
  await pass(0);
  // The pause between two statements of a round goes by the real clock.
  await until('the next page is asked for', () => counts.rounds === 2);
  answer({ last: 'uuid', count: pageSize - 1 });
  await pass(290_000);
  assert.equal(counts.rounds, 2);
  await pass(10_000);
  assert.equal(counts.rounds, 3);
  const stopped = stop();
  answer(full);
  await pass(600_000);
  await stopped;
  assert.equal(counts.rounds, 3);
});

test('old records of the history are removed within ten minutes, as long as there are any', async (t) => {
  const pass = timeOf(t);
  const { database, counts, answer } = unansweringDatabase();
  const keeping = keepHistory(database, reported, { enabled: false, keep: 60 });
  await pass(0);
  answer(); // it is off
  const stop = await keeping;
  await pass(600_000);
  assert.equal(counts.rounds, 2);
  answer({ count: 1000 }); // as many as one statement removes
  await pass(0);
  await until('the next statement is sent', () => counts.rounds === 3);
  const stopped = stop();
  answer({ count: 1000 });
  await stopped;
  assert.equal(counts.rounds, 3);
});
