import type { Dialect } from '../http/dialect.ts';
import { askedVersion, versionHeader } from '../http/microversion.ts';
import { ApiError } from '../rest/errors.ts';
import { type Service, versionText } from '../rest/versions.ts';
import { invalidBody } from './validation.ts';

const novaVersionHeader = 'x-openstack-nova-api-version';

/** How Nova's framework speaks: its headers, its faults, and what it says of versions. */
export const computeDialect: Dialect = {
  requestedMinor,
  versionHeaders: (service, minor) => ({
    [versionHeader]: `${service.type} ${versionText(service, minor)}`,
    [novaVersionHeader]: versionText(service, minor),
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

/** The text of an error that has none of its own: webob's explanations. */
const explanations: Readonly<Record<number, string>> = { 404: 'The resource could not be found.' };

function requestedMinor(service: Service, headers: Headers): number {
  const text = askedVersion(service.type, headers.get(versionHeader)) ?? lastOf(headers.get(novaVersionHeader));
  if (text === undefined) return service.minMinor;
  if (text === 'latest') return service.maxMinor;
  const [, major, minor] = /^([1-9]\d*)\.([1-9]\d*|0)$/.exec(text) ?? [];
  if (major === undefined || minor === undefined) {
    throw new ApiError(400, `API Version String ${text} is of invalid format. Must be of format MajorNum.MinorNum.`);
  }
  if (Number(major) !== service.major || Number(minor) < service.minMinor || Number(minor) > service.maxMinor) {
    const [min, max] = [service.minMinor, service.maxMinor].map((each) => versionText(service, each));
    throw new ApiError(406, `Version ${text} is not supported by the API. Minimum is ${min} and maximum is ${max}.`);
  }
  return Number(minor);
}

/**
 * The version that Nova's own header asks for: the last one of several. Unlike Placement, Nova refuses a value that is
 * no version.
 */
const lastOf = (header: string | null): string | undefined => header?.split(',').at(-1)?.trim() || undefined;
