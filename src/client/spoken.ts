import type { VersionRange } from './errors.ts';

/** Minor versions, both ends included. */
export type MinorRange = { readonly min: number; readonly max: number };

/**
 * The versions that a server speaks. Some servers send their range only when they refuse a version; some know no
 * microversions.
 */
export type Spoken = MinorRange | 'unknown range' | 'none';

/**
 * The versions of the servers that this process has used, by endpoint. So all clients of a process negotiate only once.
 */
const servers = new Map<string, Spoken>();

/** What is known about the versions of a server; undefined before the first request to it. */
export const spokenBy = (endpoint: string): Spoken | undefined => servers.get(endpoint);
/** Remembers which versions a server speaks. */
export const remember = (endpoint: string, spoken: Spoken): void => void servers.set(endpoint, spoken);
/** Forgets all servers, for tests that run several programs in one process. */
export const forgetServers = (): void => servers.clear();

/** What an answer says about the versions of the server. */
export type Told = {
  /** The minor version of the answer. */
  readonly minor: number | undefined;
  readonly spoken: MinorRange | undefined;
};

/**
 * Reads the version headers. If the version was refused, it also reads the body: older servers send their range only
 * there.
 */
export function toldBy(headers: Headers, status: number, text: string): Told {
  const min = minorIn(headers.get('openstack-api-minimum-version')) ?? minorInBody(status, text, 'min_version');
  const max = minorIn(headers.get('openstack-api-maximum-version')) ?? minorInBody(status, text, 'max_version');
  return {
    minor: minorIn(headers.get('openstack-api-version')),
    spoken: min === undefined || max === undefined ? undefined : { min, max },
  };
}

/** `placement 1.N`, alone or among other services' versions. */
function minorIn(header: string | null): number | undefined {
  const match = /(?:^|,)\s*placement\s+1\.(\d+)\s*(?:,|$)/i.exec(header ?? '');
  return match === null ? undefined : Number(match[1]);
}

function minorInBody(status: number, text: string, key: 'min_version' | 'max_version'): number | undefined {
  if (status !== 406) return undefined;
  const match = new RegExp(`"${key}"\\s*:\\s*"1\\.(\\d+)"`).exec(text);
  return match === null ? undefined : Number(match[1]);
}

/** A range in the form of errors; undefined if none is known. */
export const rangeOf = (spoken: Spoken | undefined): VersionRange | undefined =>
  typeof spoken !== 'object' ? undefined : { min: `1.${spoken.min}`, max: `1.${spoken.max}` };
