import type { Database } from '../../db/engine/connect.ts';
import type { Config } from '../config/config.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { type Dialect, type ServedApi, versionHeader, versionNamed } from '../http/dialect.ts';
import { bindEndpoints } from '../http/dispatch.ts';
import type { Reported } from '../log/outages.ts';
import { offers, openstackRange, type Service, type Version, versionOf, versionText } from '../placement/versions.ts';
import { ApiError } from '../request/errors.ts';
import type { Endpoint } from '../rest/endpoint.ts';
import type { ComputeDependencies } from './dependencies.ts';
import { openHeartbeats, retireSilentServices } from './heartbeats.ts';
import { hypervisorEndpoints } from './hypervisors.ts';
import { serviceEndpoints } from './services.ts';
import { invalidBody } from './validation.ts';
import { computeService, openPaths, since, versionEndpoints } from './versions.ts';

/** This service has no host aggregates; `openstack hypervisor show` requests their list, and fails without it. */
const hostAggregateEndpoints: readonly Endpoint<ComputeDependencies>[] = [
  {
    method: 'GET',
    path: '/compute/v2.1/os-aggregates',
    since: since.firstVersion,
    policy: 'os_compute_api:os-aggregates:index',
    handle: () => ({ status: 200, json: { aggregates: [] } }),
  },
];

/** All endpoints of the Compute API that are served. */
export const computeRoutes: readonly Endpoint<ComputeDependencies>[] = [
  ...versionEndpoints,
  ...serviceEndpoints,
  ...hypervisorEndpoints,
  ...hostAggregateEndpoints,
];

/** The Compute API, and what it does in the background. */
export type ComputeApi = {
  readonly served: ServedApi;
  /** Stops the work in the background. */
  close(): Promise<void>;
};

/** Opens the Compute API: the registry of services and hypervisors under `/compute`. */
export function openComputeApi(dependencies: {
  readonly config: Config;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly reported: Reported;
}): ComputeApi {
  const { config, database, fleet, reported } = dependencies;
  const { serviceDownTime, retireAfter } = config.compute;
  const heartbeats = openHeartbeats(database, fleet, serviceDownTime);
  const service = computeService;
  return {
    served: {
      root: '/compute',
      openPaths,
      endpoints: bindEndpoints(computeRoutes, { config, database, fleet, heartbeats, service }),
      service,
      dialect: computeDialect,
    },
    close: retireSilentServices(database, retireAfter, reported),
  };
}

const novaVersionHeader = 'x-openstack-nova-api-version';

/** The wording of Nova's framework: its headers, its faults, and its version documents. */
const computeDialect: Dialect = {
  requestedVersion,
  versionHeaders: (service, version) => ({
    [versionHeader]: `${service.type} ${versionText(version)}`,
    [novaVersionHeader]: versionText(version),
    vary: `${versionHeader}, ${novaVersionHeader}`,
  }),
  checkContentType: (contentType) => {
    const mediaType = contentType.split(';')[0]?.trim() ?? '';
    // A body without a media type is read as JSON.
    if (mediaTypes.includes(mediaType)) return;
    throw new ApiError(415, 'Unsupported Content-Type');
  },
  tooEarly: () => '',
  malformedBody: () => 'Malformed request body',
  invalidBody,
  forbidden: (rule) => `Policy doesn't allow ${rule} to be performed.`,
  renderError: (error) => {
    const fault = { code: error.status, message: error.message || (explanations[error.status] ?? '') };
    return {
      status: error.status,
      headers: { ...error.headers, 'content-type': 'application/json; charset=UTF-8' },
      body: JSON.stringify({ [faultNames[error.status] ?? 'computeFault']: fault }),
    };
  },
};

const mediaTypes = ['', 'text/plain', 'application/json', 'application/vnd.openstack.compute+json'];

const faultNames: Readonly<Record<number, string>> = {
  400: 'badRequest',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'itemNotFound',
  405: 'badMethod',
  409: 'conflictingRequest',
  413: 'overLimit',
  415: 'badMediaType',
  501: 'notImplemented',
  503: 'serviceUnavailable',
};

/** The text of an error without a message: webob's explanations. */
const explanations: Readonly<Record<number, string>> = { 404: 'The resource could not be found.' };

function requestedVersion(service: Service, headers: Headers): Version | undefined {
  const text = versionNamed(service.type, headers.get(versionHeader)) ?? lastOf(headers.get(novaVersionHeader));
  if (text === undefined) return undefined;
  const range = openstackRange(service);
  if (text === 'latest') return range.newest;
  const [, major, minor] = /^([1-9]\d*)\.([1-9]\d*|0)$/.exec(text) ?? [];
  if (major === undefined || minor === undefined) {
    throw new ApiError(400, `API Version String ${text} is of invalid format. Must be of format MajorNum.MinorNum.`);
  }
  if (offers(range, Number(major), Number(minor))) return versionOf(Number(major), Number(minor));
  throw new ApiError(
    406,
    `Version ${text} is not supported by the API. Minimum is ${versionText(range.oldest)} and maximum is ${versionText(range.newest)}.`,
  );
}

/**
 * The version in Nova's header: the last one of several. Unlike Placement, Nova refuses a value that is
 * no version.
 */
const lastOf = (header: string | null): string | undefined => header?.split(',').at(-1)?.trim() || undefined;
