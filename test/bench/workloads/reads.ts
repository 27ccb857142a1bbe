import { consumerUuid, flatHost, providerUuid } from '../data_set.ts';
import type { Concurrency } from '../measure.ts';
import { anyUpTo, reading, type Workload } from './workload.ts';

/** W6: single reads. Every second host has an allocation. The reads are about these hosts. */
export const reads: readonly Workload[] = [
  readingProviders(8),
  read('its allocations', (n) => `/resource_providers/${providerUuid(flatHost.kind, n)}/allocations`),
  read('its usages', (n) => `/resource_providers/${providerUuid(flatHost.kind, n)}/usages`),
  read('its tree', (n) => `/resource_providers?in_tree=${providerUuid(flatHost.kind, n)}`),
  read("a consumer's allocations", (n) => `/allocations/${consumerUuid(n)}`),
];

/** Reads of single providers. */
export function readingProviders(concurrency: Concurrency): Workload {
  return read('a provider', (n) => `/resource_providers/${providerUuid(flatHost.kind, n)}`, concurrency);
}

/** The number of any host that has an allocation. */
export const anyUsedHost = (providers: number): number => 2 * anyUpTo(Math.floor(providers / 2));

function read(name: string, pathOf: (n: number) => string, concurrency: Concurrency = 8): Workload {
  return reading({
    name: `W6 ${name}`,
    dataSet: 'flat',
    grows: true,
    concurrency,
    pathOf: (_, providers) => pathOf(anyUsedHost(providers)),
  });
}
