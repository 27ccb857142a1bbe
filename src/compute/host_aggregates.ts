import type { Endpoint } from '../rest/endpoint.ts';
import type { Dependencies } from './dependencies.ts';
import { since } from './microversions.ts';

/** There are no host aggregates here; `openstack hypervisor show` asks for their list, and fails without one. */
export const hostAggregateEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/compute/v2.1/os-aggregates',
    since: since.firstVersion,
    policy: 'os_compute_api:os-aggregates:index',
    handle: () => ({ status: 200, json: { aggregates: [] } }),
  },
];
