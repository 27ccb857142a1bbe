import type { VersionRange } from './errors.ts';

/** Minor versions, both ends included. */
export type MinorRange = { readonly min: number; readonly max: number };

/** What a server speaks: some servers tell their range only where they refuse a version; others know no microversions. */
export type Spoken = MinorRange | 'unknown range' | 'none';

/** What the servers that this process talked to speak, by endpoint: all clients of a process negotiate once. */
const servers = new Map<string, Spoken>();

/** What is known of a server; undefined where it was not asked yet. */
export const spokenBy = (endpoint: string): Spoken | undefined => servers.get(endpoint);
/** Notes what a server speaks. */
export const remember = (endpoint: string, spoken: Spoken): void => void servers.set(endpoint, spoken);

/** What an answer tells about the server. */
export type Told = {
  /** The minor version that the answer was made at. */
  readonly minor: number | undefined;
  readonly spoken: MinorRange | undefined;
};

/** Reads the version headers, and for a version that is not spoken the body too: older servers tell their range only there. */
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

/** A range as errors show it; undefined where none is known. */
export const rangeOf = (spoken: Spoken | undefined): VersionRange | undefined =>
  typeof spoken !== 'object' ? undefined : { min: `1.${spoken.min}`, max: `1.${spoken.max}` };
