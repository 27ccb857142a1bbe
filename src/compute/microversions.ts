import type { Service } from '../api/microversions.ts';

/** Compute 2.1 to 2.75, of which only services and hypervisors are served. */
export const computeService: Service = { type: 'compute', major: 2, minMinor: 1, maxMinor: 75 };

/** The minor versions from 2.1 on that changed something about services or hypervisors; all others are like the one before. */
export const since = {
  /** `forced_down` of services, and PUT /os-services/force-down. */
  forcedDown: 11,
  /** `cpu_info` of a hypervisor is an object instead of a text. */
  cpuInfoObject: 28,
  /** Paging of hypervisors by limit and marker. */
  paging: 33,
  /** UUIDs instead of integers; PUT /os-services/{uuid} instead of actions; hypervisor_hostname_pattern and with_servers. */
  uuids: 53,
  /** GET /os-services refuses unknown parameters. */
  strictQueries: 75,
  /** The servers of a hypervisor are listed even where there are none. */
  emptyServers: 75,
};
