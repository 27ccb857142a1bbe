import { aggregateUuid } from '../data_set.ts';
import { reading, type Workload } from './workload.ts';

/** The candidates for one claim on any host. */
export const flatQuery = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256,DISK_GB:10';

const filters = `&required=HW_CPU_X86_AVX2,!CUSTOM_BENCH_MAINT&member_of=in:${[0, 1, 2].map(aggregateUuid).join()}`;

const subtreeQuery =
  '/allocation_candidates?resources=DISK_GB:10&required=COMPUTE_VOLUME_MULTI_ATTACH' +
  '&resources_COMPUTE=VCPU:1,MEMORY_MB:256&required_COMPUTE=CUSTOM_FOO&resources_FPGA=FPGA:1' +
  '&group_policy=none&same_subtree=_COMPUTE,_FPGA';

const isolateQuery =
  '/allocation_candidates?resources=DISK_GB:10&resources1=VCPU:1,MEMORY_MB:512&resources2=VCPU:1,MEMORY_MB:512' +
  '&resources3=FPGA:1&group_policy=isolate';

/** W2: candidates among hosts without children. */
export const flatCandidates: readonly Workload[] = [
  ...latencyAndThroughput('W2 candidates', 'flat', flatQuery, { grows: true, largest: 10_000 }),
  ...latencyAndThroughput('W2 candidates, limit=100', 'flat', `${flatQuery}&limit=100`, { grows: true }),
  ...latencyAndThroughput('W2 candidates, filtered', 'flat', `${flatQuery}${filters}`, {
    grows: true,
    largest: 10_000,
  }),
];

/** W3: candidates in trees, with the query of upstream's own performance job, and with three isolated groups. */
export const nestedCandidates: readonly Workload[] = [
  ...latencyAndThroughput('W3 same_subtree, limit=100', 'nested', `${subtreeQuery}&limit=100`),
  ...latencyAndThroughput('W3 same_subtree', 'nested', subtreeQuery),
  ...latencyAndThroughput('W3 isolate, limit=100', 'nested', `${isolateQuery}&limit=100`),
  ...latencyAndThroughput('W3 isolate', 'nested', isolateQuery),
];

/** Eight conditions, all of which most hosts meet. */
export const explainedQuery = `resources=VCPU:1,MEMORY_MB:256,DISK_GB:10${filters}&root_required=HW_CPU_X86_AVX2,!CUSTOM_BENCH_MAINT`;

/** The questions about a query, each in addition to the query itself, without a limit. */
export const candidateQuestions: readonly Workload[] = (
  [
    ['flat', explainedQuery],
    ['nested', isolateQuery.slice(isolateQuery.indexOf('?') + 1)],
  ] as const
).flatMap(([dataSet, query]) =>
  (['', '/explanation', '/count'] as const).map((question) =>
    reading({
      name: `W8 ${dataSet} candidates${question}`,
      dataSet,
      concurrency: 1,
      version: '2.3',
      ...(dataSet === 'flat' ? { grows: true, largest: 10_000 } : {}),
      pathOf: () => `/allocation_candidates${question}?${query}`,
    }),
  ),
);

function latencyAndThroughput(
  name: string,
  dataSet: Workload['dataSet'],
  path: string,
  sizes: Pick<Workload, 'grows' | 'largest'> = {},
): readonly Workload[] {
  return [1, 8].map((concurrency) => reading({ name, dataSet, concurrency, ...sizes, pathOf: () => path }));
}
