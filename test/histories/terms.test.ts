/** Histories of one consumer with a term of one second: which of them the checker explains. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from './action.ts';
import { type Circumstances, check } from './check.ts';
import { claim } from './claim_actions.ts';
import { release, setTerm } from './consumer_actions.ts';
import { readAllocations, readConsumer } from './read_actions.ts';
import { type State, tags } from './state.ts';

const host = '00000000-0000-4000-8000-0000000000aa';
const uuid = '00000000-0000-4000-8000-000000000001';
const otherHost = '00000000-0000-4000-8000-0000000000bb';
const inventory = { total: 4, reserved: 0, min_unit: 1, max_unit: 4, step_size: 1, allocation_ratio: 1 };
const initial: State = {
  providers: {
    [host]: { name: 'host', generation: 1, parent: null, inventories: { VCPU: inventory }, traits: [], aggregates: [] },
    [otherHost]: {
      name: 'other host',
      generation: 1,
      parent: null,
      inventories: { VCPU: inventory },
      traits: [],
      aggregates: [],
    },
  },
  consumers: {},
  classes: [],
  former: {},
  limits: {},
};
const wish = {
  uuid,
  allocations: { [host]: { VCPU: 1 } },
  project: 'web',
  user: 'ada',
  type: 'INSTANCE',
  generation: null,
  seconds: 1,
};
const startMs = Date.parse('2026-01-01T00:00:00Z');
const steady: Circumstances = { patienceMs: 10_000, isClockSteady: true };

/** Without a status it has no answer. */
type Event = {
  readonly atMs: number;
  readonly action: Action;
  readonly status?: number | undefined;
  readonly body?: unknown;
};

/** The claim is answered 10 ms after it was sent, and so is everything. */
const claimed: Event = { atMs: 0, action: claim(2006, wish), status: 204 };
const end = (atMs: number) => new Date(startMs + atMs).toISOString();
const gone = (atMs: number): Event => ({
  atMs,
  action: readAllocations(2006, uuid),
  status: 200,
  body: { allocations: {} },
});
const there = (atMs: number, endsAtMs: number): Event => ({
  atMs,
  action: readAllocations(2006, uuid),
  status: 200,
  body: {
    allocations: { [host]: { generation: 2, resources: { VCPU: 1 } } },
    project_id: 'web',
    user_id: 'ada',
    consumer_type: 'INSTANCE',
    consumer_generation: 1,
    expires_at: end(endsAtMs),
  },
});
const renewed = (atMs: number, endsAtMs: number): Event => ({
  atMs,
  action: setTerm(2006, uuid, 1, 1),
  status: 200,
  body: { consumer_generation: 1, expires_at: end(endsAtMs) },
});
const notFound = (atMs: number): Event => ({ atMs, action: readConsumer(2006, uuid), status: 404 });

/** @param reportedAtMs when usages of the host were reported to a client that follows; undefined if none follows */
function isExplained(events: readonly Event[], circumstances = steady, reportedAtMs?: readonly number[]): boolean {
  const etag = tags.consumer({ ...wish, generation: 1, shift: 0, term: undefined });
  const operations = events.map(({ atMs, action, status, body }) => ({
    client: 0,
    action,
    invoked: startMs + atMs,
    completed: status === undefined ? undefined : startMs + atMs + 10,
    reply: status === undefined ? undefined : { status, body, etag },
  }));
  const found = check(
    {
      arena: {
        scene: 'hosts',
        classes: [],
        providers: [host],
        consumers: [uuid],
        projects: [],
        aggregates: ['', ''],
        initial,
      },
      history: { operations, now: Date.now, record: async () => undefined },
      reported: {
        changes: [
          ...(reportedAtMs ?? []).map((ms) => ({ uuid: host, parts: ['usages'], completed: startMs + ms })),
          { uuid: otherHost, parts: ['usages'], completed: Number.POSITIVE_INFINITY },
        ],
        since: reportedAtMs === undefined ? undefined : startMs - 10,
        consumers: { changes: [], since: undefined },
      },
      removedAfterMs: [],
    },
    circumstances,
  );
  return found === undefined;
}

test('a consumer is removed soon after its term expires, one second after the claim, and not before', () => {
  assert.ok(isExplained([claimed, there(800, 1005), there(1200, 1005), gone(1600)]));
  assert.ok(!isExplained([claimed, gone(900)]), 'it is gone too early');
  assert.ok(!isExplained([claimed, there(800, 1100)]), 'its end is too late');
  assert.ok(!isExplained([claimed, there(800, 1002), there(900, 1008)]), 'its end changes by itself');
  assert.ok(!isExplained([claimed, there(12_000, 1005)]), 'it is never removed');
  assert.ok(!isExplained([claimed, gone(1100), there(1200, 1005)]), 'it comes back');
});

test('a renewal before a term expires is written, and a later one is refused', () => {
  assert.ok(isExplained([claimed, there(100, 1005), renewed(900, 1905), there(1500, 1905), gone(2000)]));
  assert.ok(!isExplained([claimed, there(100, 1005), renewed(900, 1905), gone(1500)]), 'the renewal is lost');
  assert.ok(!isExplained([claimed, there(800, 1005), renewed(1100, 2105)]), 'it is renewed too late');
  assert.ok(
    isExplained([claimed, notFound(1100), there(1200, 1005), gone(1500)]),
    'it is not found before it is removed',
  );
  assert.ok(!isExplained([claimed, notFound(900)]), 'it is not found before its end');
});

test('GET /changes must report a removal after the term has expired, not before', () => {
  const removed = [claimed, there(800, 1005), gone(1600)];
  assert.ok(isExplained(removed, steady, [20, 1500]));
  assert.ok(!isExplained(removed, steady, [20, 900]));
  const cut = { atMs: 850, action: release(2006, uuid) };
  assert.ok(isExplained([...removed, cut], steady, [20, 900]), 'a request without an answer may have removed it');
});

test('while the clock of the database jumps a term may expire at any time, but a removed consumer stays removed', () => {
  const jumping = { ...steady, isClockSteady: false };
  assert.ok(isExplained([claimed, there(800, 3_600_000), gone(900)], jumping));
  assert.ok(!isExplained([claimed, gone(900), there(1000, 1005)], jumping));
  assert.ok(isExplained([claimed, there(800, 3_600_000), gone(900)], jumping, [20, 850]));
});

test('a change by a claim may have been reported when a term expired before it, and not earlier', () => {
  const moved: Event = {
    atMs: 1500,
    action: claim(1020, { ...wish, allocations: { [otherHost]: { VCPU: 1 } } }),
    status: 204,
  };
  const reported = (...atMs: readonly number[]) => isExplained([claimed, moved], steady, atMs);
  assert.ok(reported(5, 1505), 'the consumer was there until then');
  assert.ok(reported(5, 1100), 'it was removed at the end of its term');
  assert.ok(!reported(5), 'neither is reported');
  assert.ok(!reported(5, 900), 'its term had not ended');
});
