import type { Endpoint } from '../rest/endpoint.ts';
import { since } from '../rest/microversions.ts';
import { versionText } from '../rest/versions.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * GET / needs no token and has no version: clients discover the versions here, and load balancers use it as a probe.
 */
export const rootEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/',
    since: since.firstVersion,
    answersHead: true,
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
