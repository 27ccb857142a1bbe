/** Which answers with candidates are right in a state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCandidates } from './candidate_reads.ts';
import type { State } from './state.ts';
import { anyTime } from './terms.ts';

const inventory = { total: 4, reserved: 0, min_unit: 1, max_unit: 4, step_size: 1, allocation_ratio: 1 };
const host = {
  name: 'host',
  generation: 1,
  parent: null,
  inventories: { VCPU: inventory },
  traits: ['A'],
  aggregates: ['rack'],
};
const holder = {
  generation: 1,
  project: 'web',
  user: 'ada',
  type: 'INSTANCE',
  allocations: { full: { VCPU: 3 } },
  term: undefined,
  shift: 0,
};
const state: State = {
  providers: { free: host, full: host, elsewhere: { ...host, aggregates: [] } },
  consumers: { holder },
  classes: [],
  former: {},
  limits: {},
};

test('candidates have room for the requested amount in addition to the usage of the same snapshot', () => {
  const isRight = (uuids: readonly string[], amount: number, used: number): boolean => {
    const body = {
      allocation_requests: uuids.map((uuid) => ({
        allocations: { [uuid]: { resources: { VCPU: amount } } },
        mappings: { '': [uuid] },
      })),
      provider_summaries: Object.fromEntries(
        uuids.map((uuid) => [
          uuid,
          {
            resources: { VCPU: { capacity: 4, used } },
            traits: ['A'],
            parent_provider_uuid: null,
            root_provider_uuid: uuid,
          },
        ]),
      ),
    };
    const { after } = readCandidates(1036, { groups: [{ suffix: '', resources: { VCPU: 2 }, memberOf: 'rack' }] });
    return after(state, { status: 200, etag: undefined, body }, anyTime).length > 0;
  };
  assert.ok(isRight(['free'], 2, 0));
  assert.ok(!isRight(['free'], 1, 0), 'another amount');
  assert.ok(!isRight(['free'], 2, 1), 'a summary of another snapshot');
  assert.ok(!isRight([], 2, 0), 'a host is missing');
  assert.ok(!isRight(['free', 'full'], 2, 0), 'a host without room');
  assert.ok(!isRight(['free', 'elsewhere'], 2, 0), 'a host of no such aggregate');
});
