import type { Endpoint } from '../rest/endpoint.ts';
import { hostAggregateEndpoints } from './host_aggregates.ts';
import { hypervisorEndpoints } from './hypervisors.ts';
import type { Parts } from './parts.ts';
import { serviceEndpoints } from './services.ts';
import { versionEndpoints } from './versions.ts';

/** All endpoints of the Compute API that are served. */
export const computeRoutes: readonly Endpoint<Parts>[] = [
  ...versionEndpoints,
  ...serviceEndpoints,
  ...hypervisorEndpoints,
  ...hostAggregateEndpoints,
];
