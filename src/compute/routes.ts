import type { Endpoint } from '../api/endpoint.ts';
import { hypervisorEndpoints } from './hypervisors.ts';
import { serviceEndpoints } from './services.ts';
import { versionEndpoints } from './versions.ts';

/** All endpoints of the Compute API that are served. */
export const computeRoutes: readonly Endpoint[] = [...versionEndpoints, ...serviceEndpoints, ...hypervisorEndpoints];
