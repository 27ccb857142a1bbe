/** What two processes have in memory of one change log, for clients that go from one to the other, against a plain bookkeeping. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ChangedParts } from '../../db/fleet/changed_parts.ts';
import {
  createRecentChanges,
  type Position,
  type RecentChanges,
  readToken,
  tokenOf,
} from '../../src/fleet/follow/position.ts';

/** A log whose transactions a test begins and ends. */
function openLog() {
  let next = 1_000;
  const open = new Set<number>();
  const rows: { readonly xid: number; readonly id: number }[] = [];
  let ids = 0;
  return {
    rows,
    begin: () => {
      open.add(next);
      next += 1;
    },
    /** Ends the transaction at this place among those under way. One without rows may have been rolled back. */
    end: (at: number, count: number) => {
      const xid = [...open][at % Math.max(1, open.size)];
      if (xid === undefined) return;
      open.delete(xid);
      for (let row = 0; row < count; row += 1) rows.push({ xid, id: ids++ });
    },
    snapshot: () => `${Math.min(next, ...open)}:${next}:${[...open].join()}`,
  };
}

/** A position names no more transactions under way. */
const mostInPosition = 64;

/** A client: its position, what it has got, and what of that the position says. */
type Client = {
  readonly position: Position;
  readonly got: ReadonlySet<number>;
  readonly known: ReadonlySet<number>;
  /** The process from which it comes, and how often that had begun a new record. */
  readonly from: RecentChanges;
  readonly records: number;
};

function openProcess(log: ReturnType<typeof openLog>, mostRows: number) {
  const read = new Set<number>();
  const loaded = { pgSnapshot: log.snapshot(), log: { identity: 'one log', lastXid: '999' } };
  const recent = createRecentChanges(loaded, mostRows);
  let records = 0;
  const refresh = (isRecording: boolean): void => {
    const fresh = log.rows.filter(({ id }) => !read.has(id));
    for (const { id } of fresh) read.add(id);
    if (!isRecording) records += 1;
    const changedParts = fresh.map(({ xid, id }): ChangedParts => [String(xid), id, null, 1, null]);
    const lastXid = fresh.length === 0 ? null : String(Math.max(...fresh.map(({ xid }) => xid)));
    recent.note({ pgSnapshot: log.snapshot(), lastXid, ...(isRecording ? { changedParts } : {}) });
  };
  /** Where very many transactions are under way, the position does not say all. */
  const client = (): Client => {
    const { position } = recent;
    const known = log.rows.filter(({ xid, id }) => read.has(id) && xid < position.next).map(({ id }) => id);
    assert.ok(known.length === read.size || position.underWay.length === mostInPosition);
    return { position, got: new Set(read), known: new Set(known), from: recent, records };
  };
  const keeps = (client: Client): boolean =>
    client.from === recent && client.records === records && read.size - client.got.size <= mostRows / 2;
  return { recent, read, refresh, client, keeps };
}

const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ step: fc.constant('begin'), at: fc.nat(3), count: fc.constant(1) }) },
  { weight: 5, arbitrary: fc.record({ step: fc.constant('end'), at: fc.nat(100), count: fc.nat(2) }) },
  {
    weight: 4,
    arbitrary: fc.record({ step: fc.constantFrom('refresh', 'ask'), at: fc.nat(1), count: fc.constant(1) }),
  },
  fc.record({ step: fc.constantFrom('begin', 'load'), at: fc.nat(1), count: fc.constantFrom(70, 5) }),
);

test('a token has the numbers of transactions as they are, also those of servers that have assigned very many', () => {
  const { log } = openProcess(openLog(), 8).recent.position;
  for (const next of [1, 127, 128, 2 ** 31, 2 ** 32 + 1, 2 ** 53 - 1]) {
    const position = { log, next, underWay: [Math.floor(next / 2), next - 1] };
    assert.deepEqual(readToken(tokenOf(position)), position);
  }
});

test('a token of another form is none', () => {
  const [form = 0, ...rest] = Buffer.from(tokenOf(openProcess(openLog(), 8).recent.position), 'base64url').subarray(
    0,
    -4,
  );
  const tokenWith = (first: number): string => {
    const body = Buffer.from([first, ...rest]);
    return Buffer.concat([body, hash('sha256', body, 'buffer').subarray(0, 4)]).toString('base64url');
  };
  assert.ok(readToken(tokenWith(form)));
  assert.equal(readToken(tokenWith(form + 1)), undefined);
});

test('a token with a further letter is none, whatever the length of the token', () => {
  const { position } = openProcess(openLog(), 8).recent;
  for (const next of [1, 200, 20_000]) {
    const token = tokenOf({ ...position, next, underWay: [] });
    assert.ok(readToken(token));
    assert.equal(readToken(`${token}A`), undefined);
  }
});

test('a position of the log before a failover is not reached any more', () => {
  const log = openLog();
  const { recent } = openProcess(log, 8);
  const { position } = recent;
  recent.restart({ pgSnapshot: log.snapshot(), log: { identity: 'another log', lastXid: '999' } });
  assert.equal(recent.hasReached(position), false);
  assert.equal(recent.hasReached(recent.position), true);
});

test('a client gets each row once and misses none, from whichever process, or is told to read the log', () => {
  const seen = { exact: 0, notInMemory: 0, ahead: 0, long: 0, rows: 0 };
  fc.assert(
    fc.property(
      fc.array(anyStep, { minLength: 30, maxLength: 120 }),
      fc.constantFrom(8, 1_000_000),
      (steps, mostRows) => {
        const log = openLog();
        const processes = [openProcess(log, mostRows), openProcess(log, mostRows)];
        const clients = processes.map(({ client }) => client());
        /** Asks a process for what a client has not got. */
        const ask = (client: Client, asked: (typeof processes)[number]): void => {
          const { recent, read } = asked;
          const position = readToken(tokenOf(client.position));
          assert.deepEqual(position, client.position);
          assert.ok(position);
          const isAhead = [...client.known].some((id) => !read.has(id));
          if (isAhead) {
            assert.equal(recent.hasReached(position), false, 'it has got what the process has not read');
            seen.ahead += 1;
          }
          if (!recent.hasReached(position)) return;
          for (const from of [position, client.position]) {
            const rows = recent.since(from);
            if (rows === undefined) {
              const isLong = position.underWay.length === mostInPosition && from !== client.position;
              assert.ok(isLong || !asked.keeps(client), 'it is in memory');
              seen.notInMemory += 1;
              continue;
            }
            const ids = new Set(rows.map(([, id]) => id));
            const missing = [...read].filter((id) => !client.got.has(id));
            if (position.underWay.length === mostInPosition) seen.long += 1;
            assert.equal(ids.size, rows.length);
            assert.deepEqual(
              missing.filter((id) => !ids.has(id)),
              [],
              'missed',
            );
            assert.deepEqual(
              [...ids].filter((id) => id === null || client.known.has(id) || !read.has(id)),
              [],
              'got twice',
            );
            seen.exact += 1;
            seen.rows += missing.length;
          }
        };
        for (const { step, at, count } of steps) {
          const own = processes[at % 2] ?? assert.fail();
          if (step === 'begin') for (let each = 0; each < count; each += 1) log.begin();
          else if (step === 'end') log.end(at, count);
          else if (step === 'refresh') own.refresh(true);
          else if (step === 'load') own.refresh(false);
          else {
            for (const client of clients) for (const process of processes) ask(client, process);
            clients.push(own.client());
          }
        }
        for (const process of processes) {
          process.refresh(true);
          for (const client of clients) {
            // Now each process has read all.
            assert.equal(process.recent.hasReached(client.position), true);
            assert.equal(process.recent.hasReached({ ...client.position, log: 'another' }), false);
            ask(client, process);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 10, `${what}: ${count}`);
});
