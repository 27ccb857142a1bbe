import type { Endpoint } from '../api/endpoint.ts';
import type { Service } from '../api/microversions.ts';
import { versionText } from '../api/microversions.ts';

/** Discovery answers anybody. Both spellings of each path are served, since catalogs have either. */
export const openPaths: readonly string[] = ['/compute', '/compute/', '/compute/v2.1', '/compute/v2.1/'];

export const versionEndpoints: readonly Endpoint[] = openPaths.map((path) => ({
  method: 'GET',
  path,
  since: 1,
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
