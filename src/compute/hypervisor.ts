import { computeBinary, type KnownService } from '../../db/statements/services/service_row.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { type Provider, treeOf } from '../fleet/model/provider.ts';
import type { ComputeDependencies } from './dependencies.ts';
import { findServices, serviceId, stateOf, statusOf } from './service_view.ts';
import { since } from './versions.ts';

/** A root provider, and the compute service of the host with its name. A root without one is no hypervisor. */
export type Hypervisor = { readonly root: Provider; readonly service: KnownService };

/**
 * The hypervisors, in the order of their integer ids.
 *
 * @param host with it, only the hypervisor of this host
 */
export async function readHypervisors(
  dependencies: ComputeDependencies,
  host?: string,
): Promise<{ readonly fleet: Fleet; readonly hypervisors: readonly Hypervisor[] }> {
  const services = await findServices(dependencies, { binary: computeBinary, host });
  const current = await dependencies.fleet.fresh();
  const hypervisors = services.flatMap((service) => {
    const root = current.byName.get(service.host);
    return root === undefined || root.parent !== undefined ? [] : [{ root, service }];
  });
  return { fleet: current, hypervisors: hypervisors.sort((a, b) => a.root.id - b.root.id) };
}

/** The trees of some hypervisors as statements take them. */
export function membersOf(hypervisors: readonly Hypervisor[]): readonly { rootId: number; providerId: number }[] {
  const members: { rootId: number; providerId: number }[] = [];
  for (const { root } of hypervisors) {
    for (const { id } of treeOf(root)) members.push({ rootId: root.id, providerId: id });
  }
  return members;
}

/** What the database has of a hypervisor. */
type Hosted = {
  /** UUIDs of consumers with allocations in the tree; undefined where the client did not request them. */
  readonly servers: readonly string[] | undefined;
  /** How many consumers have allocations in the tree. */
  readonly runningVms: number;
};

/** A view of the fleet at the time of its creation. It may be completed after an `await`. */
type HypervisorView = (hosted: Hosted) => object;

/** A hypervisor as lists show it. */
export function hypervisorView({ root: { id, uuid, name }, service }: Hypervisor, version: number): HypervisorView {
  return ({ servers }) => ({
    id: version >= since.uuids ? uuid : id,
    hypervisor_hostname: name,
    state: stateOf(service),
    status: statusOf(service),
    // Consumers have no names in this API, so the UUID is sent as the name.
    ...(servers !== undefined && (servers.length > 0 || version >= since.emptyServers)
      ? { servers: servers.map((uuid) => ({ name: uuid, uuid })) }
      : {}),
  });
}

/**
 * A hypervisor with its figures. They come from the inventories of the whole tree; reserved amounts count as used, as
 * in Nova. Providers have no type, version, address or processor: these fields have Nova's values for unknown.
 */
export function hypervisorDetail(fleet: Fleet, hypervisor: Hypervisor, version: number): HypervisorView {
  const { service } = hypervisor;
  const view = hypervisorView(hypervisor, version);
  const shown = figures(fleet, [hypervisor]);
  return (hosted) => ({
    ...view(hosted),
    hypervisor_type: 'unknown',
    hypervisor_version: 0,
    host_ip: null,
    service: { id: serviceId(service, version), host: service.host, disabled_reason: service.disabledReason },
    ...shown,
    disk_available_least: null,
    current_workload: 0,
    running_vms: hosted.runningVms,
    cpu_info: version >= since.cpuInfoObject ? {} : '',
  });
}

/** The figures of some hypervisors together. `runningVms` is the sum over the hypervisors. */
export function hypervisorStatistics(
  fleet: Fleet,
  hypervisors: readonly Hypervisor[],
): (hosted: Pick<Hosted, 'runningVms'>) => object {
  const shown = figures(fleet, hypervisors);
  return ({ runningVms }) => ({
    count: hypervisors.length,
    ...shown,
    current_workload: 0,
    running_vms: runningVms,
    disk_available_least: 0,
  });
}

function figures({ classes }: Fleet, hypervisors: readonly Hypervisor[]) {
  const idOf = (name: string): number | undefined => classes.byName.get(name)?.id;
  const [vcpu, pcpu, memoryMb, diskGb] = [idOf('VCPU'), idOf('PCPU'), idOf('MEMORY_MB'), idOf('DISK_GB')];
  const [vcpus, memory, disk] = [noFigure(), noFigure(), noFigure()];
  const figureOf = (id: number): HypervisorFigure | undefined =>
    id === vcpu || id === pcpu ? vcpus : id === memoryMb ? memory : id === diskGb ? disk : undefined;
  // Plain loops: a list of hypervisors has the figures of each.
  for (const { root } of hypervisors) {
    for (const { inventories } of treeOf(root)) {
      for (const { fields, used } of inventories) {
        const figure = figureOf(fields.classId);
        if (figure === undefined) continue;
        figure.total += fields.total;
        figure.used += fields.reserved + used;
      }
    }
  }
  return {
    vcpus: vcpus.total,
    vcpus_used: vcpus.used,
    memory_mb: memory.total,
    memory_mb_used: memory.used,
    free_ram_mb: memory.total - memory.used,
    local_gb: disk.total,
    local_gb_used: disk.used,
    free_disk_gb: disk.total - disk.used,
  };
}

type HypervisorFigure = { total: number; used: number };
const noFigure = (): HypervisorFigure => ({ total: 0, used: 0 });
