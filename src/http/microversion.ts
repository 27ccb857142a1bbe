import { ApiError } from '../request/errors.ts';
import { type Service, versionText, versionTexts } from '../rest/versions.ts';

/** The header by which clients ask for a microversion, and by which answers say at which one they are. */
export const versionHeader = 'openstack-api-version';

/** The header from before all services shared one; its value is only `1.N` or `latest`. */
export const olderVersionHeader = (service: Service): string => `x-openstack-${service.type}-api-version`;

/**
 * The minor version that a request asks for, by the value of its `OpenStack-API-Version` header, or else of the older
 * one.
 *
 * Where the header has no version of this service, it is the oldest version; where it has several, the last one.
 * Numbers are read as upstream's Python reads them, so that `1.+5` and `01.010` are understood.
 *
 * @throws ApiError 400 where it is no version, 406 where it is out of range.
 */
export function requestedMinor(service: Service, header: string | null, olderHeader: string | null = null): number {
  const exact = header === null ? undefined : usualHeaders(service).get(header);
  if (exact !== undefined) return exact;
  const text = askedVersion(service.type, header, olderHeader);
  if (text === undefined) return service.minMinor;
  if (text === 'latest') return service.maxMinor;
  const [major, minor] = text.split('.', 2).length === 2 ? numbers(text) : [];
  if (major === undefined || minor === undefined) {
    throw new ApiError(400, `Invalid microversion: invalid version string: ${text}`);
  }
  if (major !== service.major || minor < service.minMinor || minor > service.maxMinor) {
    throw new ApiError(406, `Invalid microversion: Unacceptable version header: ${text}`);
  }
  return minor;
}

const usualHeadersOf = new WeakMap<Service, ReadonlyMap<string, number>>();

/** The headers as nearly all clients send them, such as `placement 1.39`, with their minor versions. */
function usualHeaders(service: Service): ReadonlyMap<string, number> {
  const known = usualHeadersOf.get(service);
  if (known !== undefined) return known;
  const headers = new Map(
    versionTexts(service).map((text, place) => [`${service.type} ${text}`, service.minMinor + place]),
  );
  usualHeadersOf.set(service, headers);
  return headers;
}

/**
 * The text of the version that the headers ask of a type of service: the last one of several. The newer header has
 * priority.
 */
export const askedVersion = (
  type: string,
  header: string | null,
  olderHeader: string | null = null,
): string | undefined =>
  (header === null ? undefined : versionOf(type, header)) ?? bareVersion.exec(olderHeader ?? '')?.[1];

/** The values of the older header that are accepted; others are ignored. Upstream ignores the header altogether. */
const bareVersion = /^\s*(\d+\.\d+|latest)\s*$/;

/** The headers with the oldest and the newest version, which other services of OpenStack send as well. */
export const rangeHeaders = (service: Service) => ({
  'openstack-api-minimum-version': `${service.type} ${versionText(service, service.minMinor)}`,
  'openstack-api-maximum-version': `${service.type} ${versionText(service, service.maxMinor)}`,
});

function versionOf(type: string, header: string): string | undefined {
  for (const value of header.split(',').reverse()) {
    const match = /^(\S+)\s+(\S.*)$/.exec(value.trim());
    if (match?.[1]?.toLowerCase() === type) return match[2]?.trim();
  }
  return undefined;
}

function numbers(text: string): [number | undefined, number | undefined] {
  const dot = text.indexOf('.');
  return [integer(text.slice(0, dot)), integer(text.slice(dot + 1))];
}

const integer = (text: string): number | undefined =>
  /^\s*[+-]?\d+(_\d+)*\s*$/.test(text) ? Number(text.replaceAll('_', '')) + 0 : undefined; // -0 is 0
