import { type Changes, newestOf, type Service, sinceOf } from '../rest/versions.ts';

/**
 * What minor versions of `compute 2.N` changed about services and hypervisors. All others are like the one before; of
 * what Nova offers, only services and hypervisors are served.
 */
export const changes = {
  firstVersion: [1, 'Services and hypervisors.'],
  forcedDown: [11, 'forced_down of services, and PUT /os-services/force-down.'],
  cpuInfoObject: [28, 'cpu_info of a hypervisor is an object instead of a text.'],
  paging: [33, 'Paging of hypervisors by limit and marker.'],
  uuids: [
    53,
    'UUIDs instead of integers; PUT /os-services/{uuid} instead of actions; hypervisor_hostname_pattern, with_servers.',
  ],
  strictQueries: [75, 'GET /os-services refuses unknown parameters.'],
  emptyServers: [75, 'The servers of a hypervisor are listed even where there are none.'],
} as const satisfies Changes;

/** The minor version that brought each change. */
export const since = sinceOf(changes);

/** Compute 2.1 to 2.75. */
export const computeService: Service = {
  type: 'compute',
  major: 2,
  minMinor: since.firstVersion,
  maxMinor: newestOf(since),
};
