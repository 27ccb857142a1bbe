import type { Endpoint } from './endpoint.ts';
import { type Service, versionText } from './microversions.ts';

/** GET / answers anybody, at any version: clients discover the versions here, and load balancers probe it. */
export function rootEndpoints(service: Service): readonly Endpoint[] {
  const min = versionText(service, service.minMinor);
  const max = versionText(service, service.maxMinor);
  return [
    {
      method: 'GET',
      path: '/',
      since: 0,
      handle: () => ({
        status: 200,
        // The link is relative on purpose: "this same URL", whatever proxies call it.
        json: {
          versions: [
            {
              id: `v${min}`,
              max_version: max,
              min_version: min,
              status: 'CURRENT',
              links: [{ rel: 'self', href: '' }],
            },
          ],
        },
        lastModified: new Date(),
      }),
    },
  ];
}
