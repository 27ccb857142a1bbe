import assert from 'node:assert/strict';
import { type Client, succeed } from '../races/client.ts';
import type { Deployment } from './deployment.ts';

/**
 * Sends the same requests to two services with the same data, about each provider and consumer of the sample and some
 * lists. The answers must be equal.
 */
export async function compareAnswers(
  one: Client,
  other: Client,
  { providers, consumers }: Deployment,
): Promise<number> {
  const paths = [
    ...providers.flatMap((uuid) => [
      `/resource_providers/${uuid}`,
      `/resource_providers?in_tree=${uuid}`,
      `/allocation_candidates?resources=MEMORY_MB:512&in_tree=${uuid}`,
      ...['inventories', 'traits', 'aggregates', 'usages', 'allocations'].map(
        (part) => `/resource_providers/${uuid}/${part}`,
      ),
    ]),
    ...consumers.map((uuid) => `/allocations/${uuid}`),
    ...lists,
  ];
  for (const path of paths) {
    const answers = await Promise.all([one, other].map((client) => succeed(client, 'GET', path, minorFor(path))));
    const [first, second] = answers.map((answer) => withoutOrder(withoutNewNames(answer)));
    assert.deepEqual(second, first, `GET ${path}`);
  }
  return paths.length;
}

const lists = [
  '/resource_providers',
  '/resource_providers?name=numa-1',
  '/resource_providers?resources=VCPU:200&required=CUSTOM_RAID',
  '/resource_providers?required=!COMPUTE_NODE',
  '/traits?name=startswith:CUSTOM_',
  '/traits?associated=true',
  '/resource_classes',
  `/usages?project_id=${encodeURIComponent('projet-é-0')}`,
  `/usages?project_id=${encodeURIComponent('projet-é-1')}&user_id=${encodeURIComponent('ада')}`,
  '/allocation_candidates?resources=VCPU:8,MEMORY_MB:1024,DISK_GB:10',
  '/allocation_candidates?resources=CUSTOM_LICENSE:1,DISK_GB:100&required=COMPUTE_NODE',
  '/allocation_candidates?resources_A=VCPU:4&resources_B=CUSTOM_LICENSE:1&group_policy=isolate&required_A=HW_CPU_X86_AVX2',
];

/** Upstream answers `/usages` with 500 at 1.38 if the database is PostgreSQL. */
const minorFor = (path: string): number => (path.startsWith('/usages') ? 37 : 38);

/** A later release has more standard resource classes. */
function withoutNewNames(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('resource_classes' in answer)) return answer;
  assert.ok(Array.isArray(answer.resource_classes));
  return answer.resource_classes.map(({ name }) => name).filter((name) => name.startsWith('CUSTOM_') || old.has(name));
}

const old = new Set(['VCPU', 'MEMORY_MB', 'DISK_GB', 'PCI_DEVICE', 'SRIOV_NET_VF', 'VGPU', 'PCPU']);

/** Lists as sets, because upstream does not promise their order. */
function withoutOrder(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .map(withoutOrder)
      .map((each) => JSON.stringify(each))
      .sort();
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, withoutOrder(each)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
