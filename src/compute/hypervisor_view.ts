import type { Fleet } from '../fleet/fleet.ts';
import type { Hypervisor } from './hypervisor.ts';
import { since } from './microversions.ts';
import { serviceId, stateOf, statusOf } from './service_view.ts';

/** What is known beside the hypervisor itself, where it is to be shown. */
export type Hosted = {
  /** UUIDs of consumers with allocations in the tree; undefined where nobody asked. */
  readonly servers: readonly string[] | undefined;
};

/** A hypervisor as lists show it. */
export const hypervisorView = ({ root, service }: Hypervisor, { servers }: Hosted, version: number) => ({
  id: version >= since.uuids ? root.uuid : root.id,
  hypervisor_hostname: root.name,
  state: stateOf(service),
  status: statusOf(service),
  // A consumer has no name here but its UUID.
  ...(servers !== undefined && (servers.length > 0 || version >= since.emptyServers)
    ? { servers: servers.map((uuid) => ({ name: uuid, uuid })) }
    : {}),
});

/**
 * A hypervisor with its figures. They come from the inventories of the whole tree: what is reserved counts as used, as in
 * Nova. What providers say nothing about (type, version, address, processor) has the value of what is not known.
 *
 * @param runningVms how many consumers have allocations in the tree
 */
export function hypervisorDetail(
  fleet: Fleet,
  hypervisor: Hypervisor,
  { runningVms, ...hosted }: Hosted & { readonly runningVms: number },
  version: number,
) {
  const { service } = hypervisor;
  const vcpus = figure(fleet, hypervisor, 'VCPU', 'PCPU');
  const memory = figure(fleet, hypervisor, 'MEMORY_MB');
  const disk = figure(fleet, hypervisor, 'DISK_GB');
  return {
    ...hypervisorView(hypervisor, hosted, version),
    hypervisor_type: 'unknown',
    hypervisor_version: 0,
    host_ip: null,
    service: { id: serviceId(service, version), host: service.host, disabled_reason: service.disabledReason },
    vcpus: vcpus.total,
    vcpus_used: vcpus.used,
    memory_mb: memory.total,
    memory_mb_used: memory.used,
    free_ram_mb: memory.total - memory.used,
    local_gb: disk.total,
    local_gb_used: disk.used,
    free_disk_gb: disk.total - disk.used,
    disk_available_least: null,
    current_workload: 0,
    running_vms: runningVms,
    cpu_info: version >= since.cpuInfoObject ? {} : '',
  };
}

function figure({ classes }: Fleet, { root }: Hypervisor, ...names: readonly string[]) {
  const ids = names.flatMap((name) => classes.byName.get(name)?.id ?? []);
  const inventories = root.tree
    .flatMap((provider) => provider.inventories)
    .filter(({ classId }) => ids.includes(classId));
  const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0);
  return {
    total: sum(inventories.map(({ fields }) => fields.total)),
    used: sum(inventories.map(({ fields, used }) => fields.reserved + used)),
  };
}
