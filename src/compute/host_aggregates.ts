import type { Endpoint } from '../rest/endpoint.ts';
import { since } from './microversions.ts';
import type { Parts } from './parts.ts';

/** There are no host aggregates here; `openstack hypervisor show` asks for their list, and fails without one. */
export const hostAggregateEndpoints: readonly Endpoint<Parts>[] = [
  {
    method: 'GET',
    path: '/compute/v2.1/os-aggregates',
    since: since.firstVersion,
    policy: 'os_compute_api:os-aggregates:index',
    handle: () => ({ status: 200, json: { aggregates: [] } }),
  },
];
