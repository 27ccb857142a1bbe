import { numberedUuid } from '../support/uuids.ts';

/** A request, and what is wide about it. */
export type Wide = {
  readonly what: string;
  readonly method?: 'GET' | 'PUT' | 'POST';
  readonly path: string;
  readonly body?: unknown;
};

const repeated = (count: number, text: (index: number) => string, between = '&'): string =>
  Array.from({ length: count }, (_, index) => text(index + 1)).join(between);

/** Granular groups of these amounts of a device. */
const groups = (amounts: readonly number[], more = 'group_policy=none'): string =>
  `${repeated(amounts.length, (index) => `resources${index}=SRIOV_NET_VF:${amounts[index - 1]}`)}&${more}`;

const amounts = (...counts: readonly (readonly [count: number, amount: number])[]): readonly number[] =>
  counts.flatMap(([count, amount]) => Array.from({ length: count }, () => amount));

/** Seven of five and three of four do not fit on eight devices of eight, which only trying all ways shows. */
const binPacking = amounts([7, 5], [3, 4]);

const queries: readonly (readonly [what: string, query: string])[] = [
  ['groups that seem to fit on each of many hosts', groups(binPacking)],
  ['400 groups', groups(amounts([400, 1]))],
  [
    '400 groups in one subtree',
    groups(amounts([300, 1]), `group_policy=none&same_subtree=${repeated(300, (index) => `${index}`, ',')}`),
  ],
  ['400 groups that are isolated', groups(amounts([400, 1]), 'group_policy=isolate')],
  ['1,000 traits', `resources=VCPU:1&required=${repeated(1_000, () => 'CUSTOM_HELD', ',')}`],
  [
    '1,000 traits, of which any may be',
    `resources=VCPU:1,SRIOV_NET_VF:1&${repeated(300, () => 'required=in:CUSTOM_HELD,CUSTOM_RARE')}`,
  ],
  ['1,000 forbidden traits', `resources=VCPU:1&required=${repeated(1_000, () => '!CUSTOM_RARE', ',')}`],
  ['300 aggregates', `resources=VCPU:1&${repeated(300, (index) => `member_of=${numberedUuid(1 + (index % 3))}`)}`],
  [
    '400 aggregates, of which any may be',
    `resources=VCPU:1&member_of=in:${repeated(400, (index) => numberedUuid(index), ',')}`,
  ],
  ['199 groups', groups(amounts([199, 1]))],
  ['180 aggregates', `resources=VCPU:1&${repeated(180, (index) => `member_of=${numberedUuid(1 + (index % 3))}`)}`],
  [
    '400 groups, each in one of two aggregates',
    `${groups(amounts([400, 1]))}&${repeated(400, (index) => `member_of${index}=in:${numberedUuid(1)},${numberedUuid(2)}`)}`,
  ],
  [
    '1,000 forbidden traits of roots',
    `resources=VCPU:1&root_required=${repeated(1_000, (index) => (index < 1_000 ? '!CUSTOM_RARE' : '!CUSTOM_HELD'), ',')}`,
  ],
  ['what a pool shares with all hosts', 'resources=DISK_GB:1'],
  ['a host and its pool', 'resources=VCPU:1&resources1=DISK_GB:1&resources2=DISK_GB:1&group_policy=none'],
  [
    'many keys of an order',
    `resources=VCPU:1&order=${repeated(500, (index) => (index % 2 === 0 ? 'free:VCPU' : 'prefer:CUSTOM_RARE'), ',')}`,
  ],
  ['an unknown trait behind 200 groups', `${groups(amounts([200, 8]))}&required=CUSTOM_UNKNOWN&resources=VCPU:1`],
  ['everything', 'resources=VCPU:1'],
];

const byQuery = (query: string) => ({
  candidates: query,
  project_id: 'p',
  user_id: 'u',
  consumer_generation: null,
  consumer_type: 'X',
});

/** The widest requests that are known, for a fleet of thousands of hosts. */
export const widest: readonly Wide[] = [
  ...queries.flatMap(([what, query]): Wide[] => [
    { what: `candidates: ${what}`, path: `/allocation_candidates?${query}` },
    { what: `one candidate: ${what}`, path: `/allocation_candidates?${query}&limit=1` },
    { what: `explanation: ${what}`, path: `/allocation_candidates/explanation?${query}&nearest=1000` },
    { what: `count: ${what}`, path: `/allocation_candidates/count?${query}&max=1000000&top=10000` },
    {
      what: `claim: ${what}`,
      method: 'PUT',
      path: `/allocations/${numberedUuid(7)}`,
      body: { ...byQuery(query), dry_run: true },
    },
  ]),
  {
    what: 'a dry run of 200 claims that seem to fit',
    method: 'POST',
    path: '/allocations',
    body: {
      ...Object.fromEntries(
        Array.from({ length: 200 }, (_, index) => [numberedUuid(index), byQuery(groups(binPacking))]),
      ),
      dry_run: true,
    },
  },
  { what: 'all providers', path: '/resource_providers' },
  {
    what: 'all providers of 300 aggregates',
    path: `/resource_providers?${repeated(300, (index) => `member_of=${numberedUuid(1 + (index % 3))}`)}`,
  },
  {
    what: 'all providers without 1,000 traits',
    path: `/resource_providers?required=${repeated(1_000, () => '!CUSTOM_RARE', ',')}`,
  },
  { what: 'summaries of all providers', path: '/provider_summaries?limit=10000' },
  {
    what: 'a body of many consumers',
    method: 'POST',
    path: '/allocations',
    body: Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [
        numberedUuid(index),
        { allocations: {}, project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'X' },
      ]),
    ),
  },
];
