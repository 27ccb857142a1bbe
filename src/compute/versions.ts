import type { Endpoint } from '../rest/endpoint.ts';
import { type Service, versionText } from '../rest/versions.ts';
import type { Dependencies } from './dependencies.ts';
import { since } from './microversions.ts';

/**
 * The paths by which clients discover the versions; they need no token. Both spellings of each path are served, since
 * some catalogs have the slash at the end and others do not.
 */
export const openPaths: readonly string[] = ['/compute', '/compute/', '/compute/v2.1', '/compute/v2.1/'];

export const versionEndpoints: readonly Endpoint<Dependencies>[] = openPaths.map((path) => ({
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
  version: versionText(service, service.maxMinor),
  min_version: versionText(service, service.minMinor),
  updated: '2013-07-23T11:33:21Z',
});

const mediaTypes = [{ base: 'application/json', type: 'application/vnd.openstack.compute+json;version=2.1' }];
