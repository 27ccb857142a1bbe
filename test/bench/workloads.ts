import { randomUUID } from 'node:crypto';
import type { Client } from '../races/client.ts';
import type { ServerProcess } from '../races/server_process.ts';

/** One thing that is measured, at one concurrency. */
export type Workload = {
  readonly name: string;
  readonly concurrency: number;
  readonly operation: (call: number) => Promise<void>;
};

/** The minor microversion that all workloads speak. */
const version = 39;

/** Requests of a scheduler on hosts that are all alike. */
export async function flatWorkloads(server: ServerProcess): Promise<readonly Workload[]> {
  const { client } = server;
  const rows = await server.query('select uuid from resource_providers order by id');
  const hosts = rows.map(({ uuid }) => String(uuid));
  const query = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256,DISK_GB:1';
  const filters = '&required=COMPUTE_NODE,!COMPUTE_STATUS_DISABLED&member_of=00000000-0000-4000-8000-000000000003';
  const anyHost = (): string => hosts[Math.floor(Math.random() * hosts.length)] ?? '';
  return [
    get(client, 'candidates, all', 1, query),
    get(client, 'candidates, limit 100', 1, `${query}&limit=100`),
    get(client, 'candidates, limit 100', 8, `${query}&limit=100`),
    get(client, 'candidates, filtered, limit 100', 8, `${query}${filters}&limit=100`),
    get(client, 'one provider', 8, `/resource_providers/${hosts[0]}`),
    ...[1, 8, 32, 128].map((concurrency) => claims(client, 'claims, any host', concurrency, anyHost)),
    claims(client, 'claims, one host', 16, () => hosts[0] ?? ''),
  ];
}

/** Queries with granular groups on hosts with trees. */
export function treeWorkloads({ client }: ServerProcess): readonly Workload[] {
  const query =
    '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256&resources1=PCPU:2&resources2=SRIOV_NET_VF:1' +
    '&resources3=SRIOV_NET_VF:1&group_policy=isolate';
  return [
    get(client, 'trees, three groups, limit 100', 1, `${query}&limit=100`),
    get(client, 'trees, three groups, all', 1, query),
  ];
}

const get = (client: Client, name: string, concurrency: number, path: string): Workload => ({
  name,
  concurrency,
  operation: async () => expectStatus(await client.send('GET', path, version), 200),
});

/** Claims for new consumers. */
function claims(client: Client, name: string, concurrency: number, hostOf: () => string): Workload {
  return {
    name,
    concurrency,
    operation: async () => {
      const body = {
        allocations: { [hostOf()]: { resources: { VCPU: 1, MEMORY_MB: 1, DISK_GB: 1 } } },
        project_id: 'bench',
        user_id: 'bench',
        consumer_generation: null,
        consumer_type: 'INSTANCE',
      };
      const reply = await client.send('PUT', `/allocations/${randomUUID()}`, version, body);
      // A host that is full refuses, at the same cost.
      if (reply.status !== 409) expectStatus(reply, 204);
    },
  };
}

function expectStatus(reply: { readonly status: number; readonly body: unknown }, status: number): void {
  if (reply.status !== status) throw new Error(`answered ${reply.status}: ${JSON.stringify(reply.body)}`);
}
