import type { Endpoint } from './endpoint.ts';
import { versionText } from './microversions.ts';

/** GET / answers anybody, at any version: clients discover the versions here, and load balancers probe it. */
export const rootEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/',
    since: 0,
    handle: (_request, { service }) => {
      const min = versionText(service, service.minMinor);
      return {
        status: 200,
        json: {
          versions: [
            {
              id: `v${min}`,
              max_version: versionText(service, service.maxMinor),
              min_version: min,
              status: 'CURRENT',
              // The link is relative on purpose: "this same URL", whatever proxies call it.
              links: [{ rel: 'self', href: '' }],
            },
          ],
        },
        lastModified: new Date(),
      };
    },
  },
];
