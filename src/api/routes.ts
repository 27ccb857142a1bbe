import { since } from '../placement/microversions.ts';
import { openstackRange, versionText } from '../placement/versions.ts';
import type { Endpoint } from '../rest/endpoint.ts';
import { allocationEndpoints } from './allocations/allocations.ts';
import { providerAllocationEndpoints } from './allocations/of_provider.ts';
import { reshaperEndpoints } from './allocations/reshaper.ts';
import { allocationCandidateEndpoints } from './candidates/candidates.ts';
import { candidateQuestionEndpoints } from './candidates/questions.ts';
import { changeEndpoints } from './changes.ts';
import { consumerEndpoints, consumerTermEndpoints } from './consumers/consumers.ts';
import { holdingEndpoints } from './consumers/holdings.ts';
import type { Dependencies } from './dependencies.ts';
import { limitEndpoints } from './limits.ts';
import { resourceClassEndpoints } from './resource_classes.ts';
import { aggregateEndpoints } from './resource_providers/aggregates.ts';
import { inventoryEndpoints } from './resource_providers/inventories.ts';
import { resourceProviderEndpoints } from './resource_providers/resource_providers.ts';
import { providerSummaryEndpoints } from './resource_providers/summaries.ts';
import { providerTraitEndpoints } from './resource_providers/traits.ts';
import { tokenEndpoints } from './tokens.ts';
import { traitEndpoints } from './traits.ts';
import { usageRecordEndpoints } from './usage_records.ts';
import { usageEndpoints } from './usages.ts';
import { waitingEndpoints } from './waiting.ts';

/**
 * GET / needs no token and has no version: clients discover the versions here, and load balancers use it as a probe.
 */
const rootEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/',
    since: since.firstVersion,
    answersHead: true,
    // Probes of proxies and Kubernetes send it each second.
    quiet: true,
    // GET / ignores parameters at every version.
    takesParameters: true,
    handle: (_request, { service }) => {
      const { oldest, newest } = openstackRange(service);
      const min = versionText(oldest);
      return {
        status: 200,
        json: {
          versions: [
            {
              id: `v${min}`,
              max_version: versionText(newest),
              min_version: min,
              status: 'CURRENT',
              // The link is relative on purpose: it means this same URL, whatever the proxies in front call it.
              links: [{ rel: 'self', href: '' }],
            },
          ],
        },
        lastModified: new Date(),
      };
    },
  },
];

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
  ...tokenEndpoints,
  ...limitEndpoints,
  ...waitingEndpoints,
  ...holdingEndpoints,
  ...usageRecordEndpoints,
];
