import { type Client, succeed } from '../races/client.ts';

/** The parts of a deployment that tests ask for. */
export type Deployment = {
  /** UUIDs of providers, some made by the API and some by SQL. */
  readonly providers: readonly string[];
  readonly consumers: readonly string[];
  /** How many allocations there are. */
  readonly allocationCount: number;
};

/** A UUID for a kind of object, with a number in it. */
const uuidOf = (kind: number, number: number): string =>
  `${kind}0000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const host = (number: number): string => uuidOf(1, number);
const numa = (number: number): string => uuidOf(2, number);
const server = (number: number): string => uuidOf(3, number);
const aggregates = [uuidOf(4, 1), uuidOf(4, 2)];
const storage = uuidOf(5, 1);
const bulkHost = (number: number): string => uuidOf(6, number);
const bulkServer = (number: number): string => uuidOf(7, number);

const hosts = [0, 1, 2, 3, 4, 5];
const minor = 38;

/**
 * Makes trees, sharing providers, names beyond ASCII, custom names and consumers of several types, through upstream's
 * API.
 */
export async function deployByApi(client: Client): Promise<Deployment> {
  const send = (method: string, path: string, body?: unknown) => succeed(client, method, path, minor, body);
  await send('PUT', '/traits/CUSTOM_RAID');
  await send('PUT', '/resource_classes/CUSTOM_LICENSE');
  const makeProvider = async (
    uuid: string,
    name: string,
    inventories: Readonly<Record<string, Readonly<Record<string, number>>>>,
    traits: readonly string[],
    parent?: string,
  ): Promise<void> => {
    const below = parent === undefined ? {} : { parent_provider_uuid: parent };
    await send('POST', '/resource_providers', { uuid, name, ...below });
    await send('PUT', `/resource_providers/${uuid}/inventories`, { resource_provider_generation: 0, inventories });
    await send('PUT', `/resource_providers/${uuid}/traits`, { resource_provider_generation: 1, traits });
    await send('PUT', `/resource_providers/${uuid}/aggregates`, { resource_provider_generation: 2, aggregates });
  };
  await makeProvider(storage, 'Speicher für alle', { DISK_GB: { total: 10_000, reserved: 100 } }, [
    'MISC_SHARES_VIA_AGGREGATE',
    'CUSTOM_RAID',
  ]);
  for (const number of hosts) {
    const memory = {
      MEMORY_MB: { total: 65_536, reserved: 512, allocation_ratio: 1.5, step_size: 256, min_unit: 256 },
    };
    const license = { CUSTOM_LICENSE: { total: 3, allocation_ratio: 0.9 } };
    await makeProvider(host(number), `hôte-${number}-東京`, { ...memory, ...license }, ['COMPUTE_NODE']);
    await makeProvider(
      numa(number),
      `numa-${number}`,
      { VCPU: { total: 16, allocation_ratio: 16 } },
      ['HW_CPU_X86_AVX2'],
      host(number),
    );
  }
  // The child gets a lower id than its parent.
  await send('POST', '/resource_providers', { uuid: host(99), name: 'parent of an older one' });
  await send('PUT', `/resource_providers/${host(5)}`, { name: 'moved', parent_provider_uuid: host(99) });
  for (const number of hosts) {
    const allocations = {
      [host(number)]: { resources: { MEMORY_MB: 1024, ...(number % 2 === 0 ? { CUSTOM_LICENSE: 1 } : {}) } },
      [numa(number)]: { resources: { VCPU: 1 + number } },
      [storage]: { resources: { DISK_GB: 20 } },
    };
    const owner = { project_id: `projet-é-${number % 2}`, user_id: 'ада', consumer_generation: null };
    await send('PUT', `/allocations/${server(number)}`, {
      allocations,
      ...owner,
      consumer_type: number % 3 === 0 ? 'MIGRATION' : 'INSTANCE',
    });
  }
  return {
    providers: [storage, ...hosts.map(host), ...hosts.map(numa), host(99)],
    consumers: hosts.map(server),
    allocationCount: hosts.length * 3 + hosts.length / 2,
  };
}

/** Runs a statement on the database of the deployment, in SQL that both MariaDB and PostgreSQL understand. */
export type Execute = (statement: string) => Promise<unknown>;

/** Adds 1,000 hosts, and servers with three allocations each until there are `allocationCount` or a few more. */
export async function deployBySql(
  execute: Execute,
  deployment: Deployment,
  allocationCount: number,
): Promise<Deployment> {
  const servers = numbers(Math.ceil((allocationCount - deployment.allocationCount) / 3));
  const now = "'2024-02-29 12:34:56'";
  await insert(execute, 'resource_providers (uuid, name, generation, created_at)', numbers(1000), (number) => [
    `'${bulkHost(number)}'`,
    `'bulk-${number}'`,
    '7',
    now,
  ]);
  await execute('update resource_providers set root_provider_id = id where root_provider_id is null');
  await execute(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
      allocation_ratio, created_at)
    select p.id, c.id, 100000, 0, 1, 100000, 1, case c.name when 'VCPU' then 16.0 when 'DISK_GB' then 0.95 else 1.5 end, ${now}
    from resource_providers p join resource_classes c on c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')
    where p.uuid like '6%' order by p.id, c.id`);
  await execute(`insert into resource_provider_traits (trait_id, resource_provider_id)
    select t.id, p.id from resource_providers p join traits t on t.name in ('COMPUTE_NODE', 'HW_CPU_X86_AVX2', 'CUSTOM_RAID')
    where p.uuid like '6%'`);
  await insert(execute, 'consumers (uuid, project_id, user_id, generation, created_at)', servers, (number) => [
    `'${bulkServer(number)}'`,
    ...['0', '0', '1', now],
  ]);
  await execute(`update consumers set project_id = (select min(id) from projects), user_id = (select min(id) from users),
    consumer_type_id = (select min(id) from consumer_types) where uuid like '7%'`);
  // A server is on the host with the last three digits of its number.
  await execute(`insert into allocations (resource_provider_id, consumer_id, resource_class_id, used, created_at)
    select p.id, k.uuid, c.id, case c.name when 'VCPU' then 2 when 'MEMORY_MB' then 512 else 10 end, ${now}
    from consumers k join resource_providers p on p.uuid = concat('${bulkHost(0).slice(0, -3)}', substr(k.uuid, 34, 3))
      join resource_classes c on c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')
    where k.uuid like '7%' order by k.id, c.id`);
  return {
    providers: [...deployment.providers, ...[0, 333, 999].map(bulkHost)],
    consumers: [...deployment.consumers, ...[0, 1234].map(bulkServer)],
    allocationCount: deployment.allocationCount + servers.length * 3,
  };
}

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, number) => number);

async function insert(
  execute: Execute,
  columns: string,
  rows: readonly number[],
  valuesOf: (number: number) => readonly string[],
): Promise<void> {
  for (let first = 0; first < rows.length; first += 5000) {
    const values = rows.slice(first, first + 5000).map((number) => `(${valuesOf(number).join(', ')})`);
    await execute(`insert into ${columns} values ${values.join(', ')}`);
  }
}
