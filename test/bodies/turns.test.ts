/** Requests that work for long take turns, and others are served between these. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextRound } from 'node:timers/promises';
import {
  inPieces,
  noteShortRequest,
  openTurns,
  type Pieces,
  pauseMsAfter,
  turnMsBeside,
} from '../../src/request/turns.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import { holdNothing, readChunks } from '../support/chunks.ts';

/** Counts the iterations of the event loop until it is stopped. */
function countRounds() {
  let rounds = 0;
  let isOn = true;
  const count = () => {
    rounds += 1;
    if (isOn) setImmediate(count);
  };
  setImmediate(count);
  return {
    now: () => rounds,
    stop: () => {
      isOn = false;
    },
  };
}

function work(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs; );
}

suite('turns', () => {
  test('several requests have their turns in different iterations of the event loop', async () => {
    const rounds = countRounds();
    const all = Array.from({ length: 5 }, () => openTurns());
    const at = await Promise.all(all.map((turns) => turns.pass().then(rounds.now)));
    rounds.stop();
    assert.equal(new Set(at).size, all.length, String(at));
    assert.deepEqual(
      at,
      at.toSorted((one, other) => one - other),
      'those that came first go on first',
    );
  });

  test('after the turn of one request, the turn of the next request in the same iteration is over at its first check', async (t) => {
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => nowMs);
    await nextRound();
    const [first, second] = [openTurns(), openTurns()];
    first.begin();
    nowMs += 15;
    assert.equal(first.isOver(1000), true);
    first.end();
    second.begin();
    assert.equal(second.isOver(1000), true);
    await second.pass();
    assert.equal(second.isOver(1000), false);
  });

  test('a short turn leaves time for the next request', async (t) => {
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => nowMs);
    await nextRound();
    const [first, second] = [openTurns(), openTurns()];
    first.begin();
    nowMs += 5;
    first.end();
    second.begin();
    nowMs += 4;
    assert.equal(second.isOver(1000), false);
    nowMs += 1;
    assert.equal(second.isOver(1000), true);
  });

  test('turns are short beside short requests, longer beside long requests, and longest without other requests', () => {
    assert.equal(turnMsBeside(30, 0), 10);
    assert.equal(turnMsBeside(30, 8), 10);
    assert.equal(turnMsBeside(0, 0), 1);
    assert.equal(turnMsBeside(20, 4), 1);
    assert.equal(turnMsBeside(0, 8), 2, 'long work has a fifth of the time at least');
    assert.equal(turnMsBeside(0, 1000), 10);
  });

  test('a short request makes the turns after it short, for 25 ms', async (t) => {
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => nowMs);
    await nextRound();
    const turns = openTurns();
    /** How long a turn is that begins now. */
    const length = (): number => {
      turns.begin();
      for (let tookMs = 1; ; tookMs += 1) {
        nowMs += 1;
        if (turns.isOver(1000)) return tookMs;
      }
    };
    assert.equal(length(), 10);
    assert.equal(turns.hasPassed(), false);
    noteShortRequest();
    await turns.pass();
    assert.equal(turns.hasPassed(), true);
    assert.equal(length(), 1);
    for (let passed = 0; passed < 30; passed += 1) {
      nowMs += 1;
      await turns.pass();
    }
    assert.equal(length(), 10);
    noteShortRequest();
    await turns.pass();
    assert.equal(length(), 1);
    nowMs += 1_001;
    await nextRound();
    assert.equal(length(), 10, 'what was measured tells nothing after a second');
  });

  test('the pause between two turns grows at once with the short requests that were answered, and shrinks step by step', () => {
    assert.equal(pauseMsAfter(0, 0), 0);
    assert.equal(pauseMsAfter(0, 3), 3);
    assert.equal(pauseMsAfter(3, 1_000), 5);
    assert.equal(pauseMsAfter(5, 1), 4);
    assert.equal(pauseMsAfter(4, 0), 3);
  });

  test('a turn begins later if short requests were answered before it, and otherwise immediately', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const turns = openTurns();
    /** Whether a turn comes within some iterations of the event loop. */
    const comes = async (turn: Promise<void>): Promise<boolean> => {
      let has = false;
      void turn.then(() => {
        has = true;
      });
      for (let round = 0; round < 5; round += 1) await nextRound();
      return has;
    };
    /** Of earlier tests. */
    const forget = async (): Promise<void> => {
      for (let pauseMs = 5; pauseMs >= 0; pauseMs -= 1) {
        const turn = turns.pass();
        t.mock.timers.tick(5);
        await turn;
      }
    };
    await forget();
    assert.equal(await comes(turns.pass()), true);
    for (let answered = 0; answered < 3; answered += 1) noteShortRequest();
    assert.equal(await comes(turns.pass()), true, 'this turn sees that three were answered');
    const [next, other] = [turns.pass(), openTurns().pass()];
    assert.equal(await comes(next), false);
    t.mock.timers.tick(2);
    assert.equal(await comes(next), false);
    t.mock.timers.tick(1);
    assert.equal(await comes(next), true);
    assert.equal(await comes(other), false, 'no further one was answered, but the pause shrinks step by step');
    t.mock.timers.tick(2);
    assert.equal(await comes(other), true);
    await forget();
    assert.equal(await comes(turns.pass()), true);
  });

  test('only CPU time counts as work: a request is not stopped because its process got no CPU time for seconds', async (t) => {
    let nowMs = 1_000_000;
    let cpuMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    t.mock.method(process, 'cpuUsage', () => ({ user: cpuMs * 1000, system: 0 }));
    /** The number of turns until the request is stopped, or `most`. */
    const turnsOf = async (cpuMsOfTurn: number, most: number): Promise<number> => {
      const turns = openTurns();
      turns.begin();
      for (let taken = 1; taken <= most; taken += 1) {
        nowMs += 100;
        cpuMs += cpuMsOfTurn;
        try {
          await turns.pass();
        } catch (error) {
          assert.match(String(error), /stopped after 5 s of work/);
          return taken;
        }
      }
      return most;
    };
    assert.equal(await turnsOf(1, 200), 200, '20 s in which the process got 0.2 s');
    // The first turn counts as long as a turn should be, 10 ms; then 249 of 20 ms make 4.99 s.
    assert.equal(await turnsOf(20, 1000), 251);
  });

  test('short requests are served while many long requests work at the same time', async () => {
    const requests = 8;
    let done = 0;
    function* long(): Pieces<void> {
      for (let piece = 0; piece < 5; piece += 1) {
        work(11);
        yield;
      }
      done += 1;
    }
    const rounds = countRounds();
    await nextRound();
    await Promise.all(Array.from({ length: requests }, () => inPieces(long(), openTurns())));
    rounds.stop();
    assert.equal(done, requests);
    // Each request has five turns, and only the first of all come in one round.
    assert.ok(rounds.now() >= 4 * requests, String(rounds.now()));
  });

  test('a request whose client has disconnected stops its work', async (t) => {
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => nowMs);
    const gone = new AbortController();
    let made = 0;
    function* endless(): Pieces<void> {
      for (; made < 1_000; made += 1) {
        nowMs += 11;
        turns.noteResult();
        if (made === 5) gone.abort();
        yield;
      }
    }
    const turns = openTurns(() => gone.signal);
    await assert.rejects(async () => inPieces(endless(), turns), { message: 'The client has left.' });
    assert.equal(made, 5);
  });
});

test('between two chunks of an answer other requests are served, also if its client reads the next chunk at once', async () => {
  const chunk = new Uint8Array(10);
  function* chunks() {
    for (let made = 0; made < 10; made += 1) yield chunk;
  }
  const body = await jsonBody(chunks(), holdNothing, openTurns());
  assert.ok('next' in body);
  const rounds = countRounds();
  let read = 0;
  for await (const each of readChunks(body)) read += each.length;
  rounds.stop();
  assert.equal(read, 100);
  assert.ok(rounds.now() >= 8, String(rounds.now())); // two chunks are made before the answer begins
});
