import type { Query } from '../races/server_process.ts';

const hostInventories = `('VCPU', 64, 16.0), ('MEMORY_MB', 262144, 1.5), ('DISK_GB', 4096, 1.0)`;

/** `count` hosts without children, each with three inventories, three traits and one of ten aggregates. */
export async function loadFlatHosts(query: Query, count: number): Promise<void> {
  await query(`insert into resource_providers (uuid, name, generation, created_at)
    select gen_random_uuid(), 'host-' || n, 0, now() from generate_series(1, ${count}) as n`);
  await query('update resource_providers set root_provider_id = id where root_provider_id is null');
  await loadInventories(query, hostInventories, 'parent_provider_id is null');
  await query(`insert into resource_provider_traits (resource_provider_id, trait_id)
    select p.id, t.id from resource_providers p, traits t
    where t.name in ('COMPUTE_NODE', 'HW_CPU_X86_AVX2', 'COMPUTE_TRUSTED_CERTS')`);
  await query(`insert into placement_aggregates (uuid) select '00000000-0000-4000-8000-00000000000' || n
    from generate_series(0, 9) as n`);
  await query(`insert into resource_provider_aggregates (resource_provider_id, aggregate_id)
    select p.id, a.id from resource_providers p join placement_aggregates a on right(a.uuid, 1)::integer = p.id % 10`);
}

/** `count` hosts with two NUMA nodes below, and two network functions below each of those. */
export async function loadTrees(query: Query, count: number): Promise<void> {
  await loadFlatHosts(query, count);
  const child = (kind: string, parents: string, each: number) =>
    query(`insert into resource_providers (uuid, name, generation, root_provider_id, parent_provider_id, created_at)
      select gen_random_uuid(), p.name || '-${kind}' || n, 0, p.root_provider_id, p.id, now()
      from resource_providers p, generate_series(1, ${each}) as n where ${parents}`);
  await child('numa', 'p.parent_provider_id is null', 2);
  await child('pf', `p.name like '%-numa_'`, 2);
  await loadInventories(query, `('PCPU', 16, 1.0)`, `name like '%-numa_'`);
  await loadInventories(query, `('SRIOV_NET_VF', 8, 1.0)`, `name like '%-pf_'`);
}

const loadInventories = (query: Query, rows: string, where: string) =>
  query(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
      allocation_ratio, created_at)
    select p.id, c.id, i.total, 0, 1, i.total, 1, i.ratio, now()
    from resource_providers p, (values ${rows}) as i (class, total, ratio) join resource_classes c on c.name = i.class
    where ${where.replaceAll('name ', 'p.name ')}`);
