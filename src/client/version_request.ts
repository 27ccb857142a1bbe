import { VersionError, type VersionRange } from './errors.ts';
import { type Microversion, newestMinor } from './microversions.ts';
import { answered, type Call, type CallOptions } from './operation.ts';

/** The versions that a server speaks, and the version that this client uses with it. */
export type ServerVersion = {
  /** The microversion in use with the server. It can be newer than this client only if `latest` was asked for. */
  readonly version: string;
  /** The range that the server speaks; absent if it knows no microversions. */
  readonly min?: string;
  readonly max?: string;
};

type VersionDocument = {
  readonly versions?: readonly { readonly min_version?: string; readonly max_version?: string }[];
};

/** Makes the call that asks a server for its versions. */
export const serverVersionCall =
  (call: Call) =>
  async (options?: CallOptions): Promise<ServerVersion> => {
    const reply = call({ method: 'GET', path: '/' }, options);
    const { versions: [first] = [] } = (await answered<VersionDocument | undefined>(reply)) ?? {};
    return {
      version: `1.${(await reply).minor}`,
      ...(first?.min_version === undefined ? {} : { min: first.min_version }),
      ...(first?.max_version === undefined ? {} : { max: first.max_version }),
    };
  };

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

/** Which version the client asks for. Minor versions are the N of `1.N`. */
export type Wanted =
  /** No version is named: use the newest version in this range that both sides know. */
  | { readonly kind: 'negotiated'; readonly oldest: number; readonly newest: number }
  /** The program named this version: no other is acceptable. */
  | { readonly kind: 'named'; readonly minor: number }
  /** The newest version of the server. */
  | { readonly kind: 'latest' };

/** Which version the program wants. */
type VersionOptions = {
  /** `1.N` or `latest`: the only version to use. If absent, both sides negotiate the newest that both know. */
  readonly version?: string | undefined;
  /** For negotiation: the oldest version that the program can work with. Default: 1.0. */
  readonly oldest?: Microversion | undefined;
  /**
   * For negotiation: the newest version that the program was written for. Default: the newest that this client knows.
   */
  readonly newest?: Microversion | undefined;
};

/** @throws VersionError if a text is not a microversion, or not one that this client knows */
export function wantedVersion({ version, oldest, newest }: VersionOptions): Wanted {
  if (version === undefined) {
    const range = {
      oldest: oldest === undefined ? 0 : knownMinor(oldest),
      newest: newest === undefined ? newestMinor : knownMinor(newest),
    };
    if (range.oldest <= range.newest) return { kind: 'negotiated', ...range };
    throw new VersionError('invalid', `oldest (${oldest}) is newer than newest (${newest}). Exchange them.`);
  }
  if (version === 'latest') return { kind: 'latest' };
  return { kind: 'named', minor: knownMinor(version) };
}

function knownMinor(version: string): number {
  const match = /^(0|[1-9]\d*)\.(0|[1-9]\d*)$/.exec(version);
  if (match === null) {
    throw new VersionError('invalid', `"${version}" is no microversion. Write 1.0 to 1.${newestMinor}, or latest.`);
  }
  const minor = Number(match[2]);
  if (match[1] === '1' && minor <= newestMinor) return minor;
  throw new VersionError(
    'invalid',
    `This client does not know microversion ${version}. Choose one of 1.0 to 1.${newestMinor}, or use a newer client.`,
  );
}

/** Whether a server without microversions is acceptable. Such a server works like 1.0. */
export const acceptsOldest = (wanted: Wanted): boolean =>
  wanted.kind === 'latest' || (wanted.kind === 'negotiated' && wanted.oldest === 0);

/** The newest version that both sides know, or undefined. */
export function common(
  wanted: { readonly oldest: number; readonly newest: number },
  server: { readonly min: number; readonly max: number },
): number | undefined {
  const best = Math.min(wanted.newest, server.max);
  return best >= Math.max(wanted.oldest, server.min) ? best : undefined;
}

/** The wanted version or versions, for messages. */
export function wantedText(wanted: Wanted): string {
  if (wanted.kind === 'latest') return 'latest';
  if (wanted.kind === 'named') return `1.${wanted.minor}`;
  return `1.${wanted.oldest} to 1.${wanted.newest}`;
}
