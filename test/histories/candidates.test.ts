/** Which candidates a query has in a state with two trees: a host with two parts, and one with one part. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidatesOf, type Group, type Query, queryText, type SearchOptions } from './candidates.ts';
import type { ProviderState, State } from './state.ts';

const inventory = (total: number) => ({
  total,
  reserved: 0,
  min_unit: 1,
  max_unit: total,
  step_size: 1,
  allocation_ratio: 1,
});
const provider = (changes: Partial<ProviderState>): ProviderState => ({
  name: '',
  generation: 1,
  parent: null,
  inventories: {},
  traits: [],
  aggregates: [],
  ...changes,
});
const state: State = {
  providers: {
    host: provider({ inventories: { MEM: inventory(4) }, traits: ['HOST'], aggregates: ['rack'] }),
    left: provider({ parent: 'host', inventories: { CPU: inventory(2) }, traits: ['FAST'] }),
    right: provider({ parent: 'host', inventories: { CPU: inventory(3) } }),
    other: provider({ inventories: { MEM: inventory(4) } }),
    part: provider({ parent: 'other', inventories: { CPU: inventory(2) } }),
  },
  consumers: {
    holder: {
      generation: 1,
      project: 'web',
      user: 'ada',
      type: 'INSTANCE',
      allocations: { right: { CPU: 1 } },
      term: undefined,
      shift: 0,
    },
  },
  classes: [],
  former: {},
  limits: {},
};
const plain = (group: Partial<Group> & Pick<Group, 'resources'>): Group => ({ suffix: '', ...group });
const granular = (suffix: string, group: Partial<Group>): Group => ({ suffix, resources: {}, ...group });

/** The providers of each candidate, by class or by group, as one sorted text each. */
const found = (query: Query, options?: SearchOptions): readonly string[] =>
  candidatesOf(state, query, options)
    .map(({ allocations }) =>
      Object.entries(allocations)
        .flatMap(([uuid, amounts]) => Object.entries(amounts).map(([name, amount]) => `${uuid} ${name}:${amount}`))
        .sort()
        .join(', '),
    )
    .sort();

test('the group without suffix takes each class of any provider of one tree', () => {
  assert.deepEqual(found({ groups: [plain({ resources: { CPU: 2, MEM: 1 } })] }), [
    'host MEM:1, left CPU:2',
    'host MEM:1, right CPU:2',
    'other MEM:1, part CPU:2',
  ]);
  const fast = plain({ resources: { CPU: 1, MEM: 1 }, required: ['FAST', 'HOST'] });
  assert.deepEqual(found({ groups: [fast] }), ['host MEM:1, left CPU:1'], 'traits of all its providers together');
  assert.equal(found({ groups: [plain({ resources: { CPU: 1 }, memberOf: 'rack' })] }).length, 2);
  assert.deepEqual(found({ groups: [plain({ resources: { CPU: 2 }, forbidden: ['FAST'], inTree: 'left' })] }), [
    'right CPU:2',
  ]);
});

test('a granular group takes all of one provider, which has the traits and aggregates itself', () => {
  assert.deepEqual(found({ groups: [granular('_A', { resources: { CPU: 1, MEM: 1 } })] }), []);
  assert.deepEqual(found({ groups: [granular('_A', { resources: { CPU: 1 }, memberOf: 'rack' })] }), []);
  assert.deepEqual(found({ groups: [granular('_A', { resources: { CPU: 1 }, required: ['FAST'] })] }), ['left CPU:1']);
  assert.deepEqual(found({ groups: [granular('_A', { resources: { CPU: 1 }, inTree: 'gone' })] }), []);
});

test('groups together take no more than there is, of different providers with isolation', () => {
  const groups = [granular('_A', { resources: { CPU: 1 } }), granular('_B', { resources: { CPU: 2 } })];
  assert.deepEqual(found({ groups }), ['left CPU:1, right CPU:2', 'left CPU:2, right CPU:1']);
  const ones = groups.map((group) => ({ ...group, resources: { CPU: 1 } }));
  assert.deepEqual(found({ groups: ones }).length, 5);
  assert.deepEqual(found({ groups: ones, isolate: true }).length, 2);
});

test('same_subtree requires a provider above all others, and root_required a trait of the root', () => {
  const groups = [granular('_A', { resources: { CPU: 1 } }), granular('_B', { required: ['FAST'] })];
  assert.deepEqual(found({ groups, sameSubtree: ['_A', '_B'] }), ['left CPU:1']);
  const above = [granular('_A', { resources: { CPU: 2 } }), granular('_B', { required: ['HOST'] })];
  assert.deepEqual(found({ groups: above, sameSubtree: ['_A', '_B'] }), ['left CPU:2', 'right CPU:2']);
  assert.deepEqual(found({ groups: [plain({ resources: { CPU: 2 } })], rootRequired: 'HOST' }).length, 2);
});

test('trees may be shut out, and an inventory that is used beyond its capacity may stay so', () => {
  const query = { groups: [plain({ resources: { CPU: 3 } })] };
  assert.deepEqual(found({ groups: [plain({ resources: { CPU: 2 } })] }, { isAllowed: (root) => root === 'other' }), [
    'part CPU:2',
  ]);
  const [kept] = Object.values(state.consumers);
  assert.ok(kept);
  const before = { ...state, consumers: { ...state.consumers, own: { ...kept, allocations: { right: { CPU: 3 } } } } };
  assert.deepEqual(found(query), []);
  assert.deepEqual(found(query, { before }), ['right CPU:3']);
});

test('a query is written as the service takes it', () => {
  const query = {
    groups: [
      plain({ resources: { CPU: 1, MEM: 2 }, memberOf: 'rack' }),
      granular('_A', { required: ['FAST'], forbidden: ['HOST'] }),
    ],
    sameSubtree: ['_A'],
    isolate: true,
    apartFrom: ['one', 'two'],
  };
  assert.equal(
    queryText(query),
    'resources=CPU:1,MEM:2&member_of=rack&required_A=FAST,!HOST&group_policy=isolate&same_subtree=_A&apart_from=one,two',
  );
});
