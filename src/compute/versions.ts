import {
  newestSince,
  openstackRange,
  type Service,
  sinceOf,
  type VersionChanges,
  versionText,
} from '../placement/versions.ts';
import type { Endpoint } from '../rest/endpoint.ts';
import type { ComputeDependencies } from './dependencies.ts';

/**
 * What versions of `compute 2.N` changed about services and hypervisors. All other versions are like the one before; of
 * what Nova offers, only services and hypervisors are served.
 */
export const changes = {
  firstVersion: ['2.1', 'Services and hypervisors.'],
  forcedDown: ['2.11', 'forced_down of services, and PUT /os-services/force-down.'],
  cpuInfoObject: ['2.28', 'cpu_info of a hypervisor is an object instead of a text.'],
  paging: ['2.33', 'Paging of hypervisors by limit and marker.'],
  uuids: [
    '2.53',
    'UUIDs instead of integers; PUT /os-services/{uuid} instead of actions; hypervisor_hostname_pattern, with_servers.',
  ],
  strictQueries: ['2.75', 'GET /os-services refuses unknown parameters.'],
  emptyServers: ['2.75', 'The servers of a hypervisor are listed even where there are none.'],
} as const satisfies VersionChanges;

/** The version that introduced each change. */
export const since = sinceOf(changes);

/** Compute 2.1 to 2.75. */
export const computeService: Service = {
  type: 'compute',
  ranges: [{ oldest: since.firstVersion, newest: newestSince(since, 2) }],
  defaultVersion: since.firstVersion,
};

/**
 * The paths by which clients discover the versions; they need no token. Both spellings of each path are served, since
 * some catalogs have the slash at the end, and some do not.
 */
export const openPaths: readonly string[] = ['/compute', '/compute/', '/compute/v2.1', '/compute/v2.1/'];

export const versionEndpoints: readonly Endpoint<ComputeDependencies>[] = openPaths.map((path) => ({
  method: 'GET',
  path,
  since: since.firstVersion,
  handle: (request, { service }) => {
    const self = { rel: 'self', href: `${request.origin}${request.prefix}/compute/v2.1/` };
    const version = { ...versionOf(service), links: [self] };
    return {
      status: 200,
      json: path.includes('v2.1') ? { version: { ...version, 'media-types': mediaTypes } } : { versions: [version] },
    };
  },
}));

const versionOf = (service: Service) => ({
  id: 'v2.1',
  status: 'CURRENT',
  version: versionText(openstackRange(service).newest),
  min_version: versionText(openstackRange(service).oldest),
  updated: '2013-07-23T11:33:21Z',
});

const mediaTypes = [{ base: 'application/json', type: 'application/vnd.openstack.compute+json;version=2.1' }];
