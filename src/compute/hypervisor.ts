import { readServices } from '../../db/statements/services/read_services.ts';
import { computeBinary, type KnownService } from '../../db/statements/services/service_row.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { type Provider, treeOf } from '../fleet/model/provider.ts';
import type { Dependencies } from './dependencies.ts';

/** A root provider, and the compute service of the host with its name. A root without one is no hypervisor. */
export type Hypervisor = { readonly root: Provider; readonly service: KnownService };

/**
 * The hypervisors, in the order of their integer ids.
 *
 * @param host with it, only the hypervisor of this host
 */
export async function readHypervisors(
  { database, fleet, config }: Dependencies,
  host?: string,
): Promise<{ readonly fleet: Fleet; readonly hypervisors: readonly Hypervisor[] }> {
  const filter = { binary: computeBinary, host };
  const services = await readServices(database, filter, config.compute.serviceDownTime);
  const current = await fleet.fresh();
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
