import type { Endpoint } from '../rest/endpoint.ts';
import { aggregateEndpoints } from './aggregates.ts';
import { allocationCandidateEndpoints } from './allocation_candidates.ts';
import { allocationEndpoints } from './allocations.ts';
import { candidateQuestionEndpoints } from './candidate_questions.ts';
import { changeEndpoints } from './changes.ts';
import { consumerTermEndpoints } from './consumer_term.ts';
import { consumerEndpoints } from './consumers.ts';
import type { Dependencies } from './dependencies.ts';
import { inventoryEndpoints } from './inventories.ts';
import { providerAllocationEndpoints } from './provider_allocations.ts';
import { providerSummaryEndpoints } from './provider_summaries.ts';
import { providerTraitEndpoints } from './provider_traits.ts';
import { reshaperEndpoints } from './reshaper.ts';
import { resourceClassEndpoints } from './resource_classes.ts';
import { resourceProviderEndpoints } from './resource_providers.ts';
import { rootEndpoints } from './root.ts';
import { traitEndpoints } from './traits.ts';
import { usageEndpoints } from './usages.ts';

/** All endpoints of the Placement API. */
export const routes: readonly Endpoint<Dependencies>[] = [
  ...rootEndpoints,
  ...resourceClassEndpoints,
  ...resourceProviderEndpoints,
  ...inventoryEndpoints,
  ...usageEndpoints,
  ...aggregateEndpoints,
  ...providerAllocationEndpoints,
  ...allocationEndpoints,
  ...consumerEndpoints,
  ...consumerTermEndpoints,
  ...traitEndpoints,
  ...providerTraitEndpoints,
  ...reshaperEndpoints,
  ...allocationCandidateEndpoints,
  ...candidateQuestionEndpoints,
  ...providerSummaryEndpoints,
  ...changeEndpoints,
];
