import type { Endpoint } from '../rest/endpoint.ts';
import type { Dependencies } from './dependencies.ts';
import { hostAggregateEndpoints } from './host_aggregates.ts';
import { hypervisorEndpoints } from './hypervisors.ts';
import { serviceEndpoints } from './services.ts';
import { versionEndpoints } from './versions.ts';

/** All endpoints of the Compute API that are served. */
export const computeRoutes: readonly Endpoint<Dependencies>[] = [
  ...versionEndpoints,
  ...serviceEndpoints,
  ...hypervisorEndpoints,
  ...hostAggregateEndpoints,
];
