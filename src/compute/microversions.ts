import type { Service } from '../api/microversions.ts';

/** Compute 2.1 to 2.75, of which only services and hypervisors are served. */
export const computeService: Service = { type: 'compute', major: 2, minMinor: 1, maxMinor: 75 };

/** The minor versions that changed something about services or hypervisors, and what; all others are like the one before. */
export const computeChanges: Readonly<Record<number, string>> = {
  1: 'Services and hypervisors.',
  11: 'forced_down of services, and PUT /os-services/force-down.',
  28: 'cpu_info of a hypervisor is an object instead of a text.',
  33: 'Paging of hypervisors by limit and marker.',
  53: 'UUIDs instead of integers; PUT /os-services/{uuid} instead of actions; hypervisor_hostname_pattern and with_servers.',
  75: 'GET /os-services refuses unknown parameters; servers of a hypervisor are there even where there are none.',
};

export const since = { forcedDown: 11, cpuInfoObject: 28, paging: 33, uuids: 53, strictQueries: 75, emptyServers: 75 };
