import { AuthError } from './errors.ts';

/** The services of a Keystone token, with their endpoints. */
export type Catalog = readonly {
  readonly type: string;
  readonly endpoints: readonly {
    readonly interface: string;
    readonly url: string;
    readonly region?: string | null;
    readonly region_id?: string | null;
  }[];
}[];

/** Which of several endpoints is used. Default: public, in any region. */
export type EndpointChoice = { readonly interface?: string | undefined; readonly region?: string | undefined };

/** The URL of the placement service. @throws AuthError if the catalog has no endpoint that matches */
export function placementIn(catalog: Catalog, choice: EndpointChoice): string {
  const wanted = choice.interface ?? 'public';
  if (catalog.length === 0) {
    throw new AuthError(
      'The token has no catalog, because it is not for a project. Name a project, or give the endpoint.',
    );
  }
  const endpoints = catalog.filter(({ type }) => type === 'placement').flatMap((service) => service.endpoints);
  if (endpoints.length === 0) {
    const types = [...new Set(catalog.map(({ type }) => type))].join(', ');
    throw new AuthError(
      `The catalog has no service of type placement, only ${types}. Register it, or give the endpoint.`,
    );
  }
  const regionOf = (endpoint: (typeof endpoints)[number]) => endpoint.region_id ?? endpoint.region ?? undefined;
  const found = endpoints.find(
    (endpoint) =>
      endpoint.interface === wanted && (choice.region === undefined || regionOf(endpoint) === choice.region),
  );
  if (found !== undefined) return found.url;
  const there = endpoints.map((endpoint) => `${endpoint.interface} in ${regionOf(endpoint) ?? 'no region'}`).join(', ');
  const where = choice.region === undefined ? '' : ` in region ${choice.region}`;
  throw new AuthError(
    `The catalog has no ${wanted} endpoint of placement${where}, only: ${there}. Choose one of these.`,
  );
}
