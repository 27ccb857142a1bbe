import { aggregateEndpoints } from './aggregates.ts';
import { allocationEndpoints } from './allocations.ts';
import type { Endpoint } from './endpoint.ts';
import { inventoryEndpoints } from './inventories.ts';
import { placementService, type Service } from './microversions.ts';
import type { Parts } from './parts.ts';
import { providerAllocationEndpoints } from './provider_allocations.ts';
import { providerTraitEndpoints } from './provider_traits.ts';
import { reshaperEndpoints } from './reshaper.ts';
import { resourceClassEndpoints } from './resource_classes.ts';
import { resourceProviderEndpoints } from './resource_providers.ts';
import { rootEndpoints } from './root.ts';
import { traitEndpoints } from './traits.ts';
import { usageEndpoints } from './usages.ts';

/** All endpoints of the Placement API. */
export function placementEndpoints(parts: Parts, service: Service = placementService): readonly Endpoint[] {
  return [
    ...rootEndpoints(service),
    ...resourceClassEndpoints(parts),
    ...resourceProviderEndpoints(parts),
    ...inventoryEndpoints(parts),
    ...usageEndpoints(parts),
    ...aggregateEndpoints(parts),
    ...providerAllocationEndpoints(parts),
    ...allocationEndpoints(parts),
    ...traitEndpoints(parts),
    ...providerTraitEndpoints(parts),
    ...reshaperEndpoints(parts),
  ];
}
