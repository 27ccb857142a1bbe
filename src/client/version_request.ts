import { VersionError, type VersionRange } from './errors.ts';
import {
  type Microversion,
  majorOf,
  microversions,
  newestKnown,
  newestOfOpenstack,
  numberOfVersion,
  oldestKnown,
  versionNumber,
  versionText,
} from './microversions.ts';
import { type Call, type CallOptions, listIn } from './operation.ts';

/** The versions that a server speaks, and the version that this client uses with it. */
export type ServerVersion = {
  /** The microversion in use with the server. It can be newer than this client only if `latest` was requested. */
  readonly version: string;
  /** The oldest and the newest version that the server speaks; absent if it knows no microversions. */
  readonly min?: string;
  readonly max?: string;
};

type VersionDocument = { readonly min_version?: string; readonly max_version?: string };

/** Makes the call that reads the versions of a server. */
export const serverVersionCall =
  (call: Call) =>
  async (options?: CallOptions): Promise<ServerVersion> => {
    const { body, version, headers } = await call({ method: 'GET', path: '/' }, options);
    const [first] = listIn<VersionDocument>(body, 'versions');
    // The document has OpenStack's versions only. An answer in version 2 has its newest in a header.
    const newest = versionIn(headers.get('openstack-api-maximum-version'));
    const max = newest === undefined || newest <= newestOfOpenstack ? first?.max_version : versionText(newest);
    return {
      version: versionText(version),
      ...(first?.min_version === undefined ? {} : { min: first.min_version }),
      ...(max === undefined ? {} : { max }),
    };
  };

/** The versions of one major version, both ends included. */
export type Span = { readonly min: number; readonly max: number };

/**
 * What is known of the versions that a server speaks: `none` if it knows no microversions. Otherwise what it speaks of OpenStack's versions
 * and of version 2, each as far as it is known. Some servers send their range only when they refuse a version.
 */
export type KnownVersions =
  | 'none'
  | { readonly openstack?: Span | 'some' | undefined; readonly second?: Span | 'none' | undefined };

/**
 * The versions of the servers that this process has used, by endpoint. So all clients of a process negotiate only once.
 */
const servers = new Map<string, KnownVersions>();

/** What is known about the versions of a server; undefined before the first request to it. */
export const knownVersionsOf = (endpoint: string): KnownVersions | undefined => servers.get(endpoint);
/** Remembers which versions a server speaks. */
export const remember = (endpoint: string, spoken: KnownVersions): void => void servers.set(endpoint, spoken);
/** Forgets all servers, for tests that run several programs in one process. */
export const forgetServers = (): void => servers.clear();

/** The versions of the server in an answer. */
export type ReportedVersions = {
  /** The version of the answer. */
  readonly version: number | undefined;
  /** The versions that the server speaks of one major version. */
  readonly span: Span | undefined;
};

/**
 * Reads the version headers. If the version was refused, it also reads the body: older servers send their range only
 * there.
 */
export function readReportedVersions(headers: Headers, status: number, text: string): ReportedVersions {
  const min = versionIn(headers.get('openstack-api-minimum-version')) ?? versionInBody(status, text, 'min_version');
  const max = versionIn(headers.get('openstack-api-maximum-version')) ?? versionInBody(status, text, 'max_version');
  return {
    version: versionIn(headers.get('openstack-api-version')),
    span: min === undefined || max === undefined ? undefined : { min, max },
  };
}

/** What is known about the versions of a server after an answer to a request at a version. */
export function withReportedVersions(
  spoken: KnownVersions | undefined,
  asked: number | 'latest',
  { version, span }: ReportedVersions,
): KnownVersions {
  const known = typeof spoken === 'object' ? spoken : {};
  const isSecond = span !== undefined && majorOf(span.min) > 1;
  const openstack =
    span !== undefined && !isSecond ? span : (known.openstack ?? (version === undefined ? undefined : 'some'));
  // A server without version 2 refuses it with the range of OpenStack's versions.
  const isRefused = version === undefined && asked !== 'latest' && asked > newestOfOpenstack && span !== undefined;
  const second = isSecond ? span : isRefused ? 'none' : known.second;
  return { openstack, second };
}

/** `placement 1.N` or `placement 2.N`, alone or among other services' versions. */
function versionIn(header: string | null): number | undefined {
  const match = /(?:^|,)\s*placement\s+(\d+\.\d+)\s*(?:,|$)/i.exec(header ?? '');
  return match?.[1] === undefined ? undefined : numberOfVersion(match[1]);
}

function versionInBody(status: number, text: string, key: 'min_version' | 'max_version'): number | undefined {
  if (status !== 406) return undefined;
  const match = new RegExp(`"${key}"\\s*:\\s*"(\\d+\\.\\d+)"`).exec(text);
  return match?.[1] === undefined ? undefined : numberOfVersion(match[1]);
}

/** The ranges of a server in the form of errors; undefined if none is known. */
export function rangeOf(spoken: KnownVersions | undefined): VersionRange | undefined {
  if (typeof spoken !== 'object') return undefined;
  const spans = [spoken.openstack, spoken.second].filter((span) => typeof span === 'object');
  const [first, last] = [spans.at(0), spans.at(-1)];
  return first === undefined || last === undefined
    ? undefined
    : { min: versionText(first.min), max: versionText(last.max) };
}

/** The version that the client requests. */
export type Wanted =
  /** No version is named: use the newest version in this range that both sides know. */
  | { readonly kind: 'negotiated'; readonly oldest: number; readonly newest: number }
  /** The program named this version: no other is acceptable. */
  | { readonly kind: 'named'; readonly version: number }
  /** The newest of OpenStack's versions that the server speaks. */
  | { readonly kind: 'latest' };

/** Which version the program wants. */
type VersionOptions = {
  /** `1.N`, `2.N` or `latest`: the only version to use. If absent, both sides negotiate the newest that both know. */
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
      oldest: oldest === undefined ? oldestKnown : knownVersion(oldest),
      newest: newest === undefined ? newestKnown : knownVersion(newest),
    };
    if (range.oldest <= range.newest) return { kind: 'negotiated', ...range };
    throw new VersionError('invalid', `oldest (${oldest}) is newer than newest (${newest}). Exchange them.`);
  }
  if (version === 'latest') return { kind: 'latest' };
  return { kind: 'named', version: knownVersion(version) };
}

const known = `1.0 to ${versionText(newestOfOpenstack)}, or 2.0 to ${versionText(newestKnown)}`;

function knownVersion(version: string): number {
  const found = microversions.find((each) => each === version);
  if (found !== undefined) return versionNumber(found);
  if (!/^(0|[1-9]\d*)\.(0|[1-9]\d*)$/.test(version)) {
    throw new VersionError('invalid', `"${version}" is no microversion. Write ${known}, or latest.`);
  }
  throw new VersionError(
    'invalid',
    `This client does not know microversion ${version}. Choose one of ${known}, or use a newer client.`,
  );
}

/** Whether a server without microversions is acceptable. Such a server works like 1.0. */
export const acceptsOldest = (wanted: Wanted): boolean =>
  wanted.kind === 'latest' || (wanted.kind === 'negotiated' && wanted.oldest === oldestKnown);

/** The newest version that both sides know, or undefined. */
export function common(wanted: { readonly oldest: number; readonly newest: number }, server: Span): number | undefined {
  const best = Math.min(wanted.newest, server.max);
  return best >= Math.max(wanted.oldest, server.min) ? best : undefined;
}

/** The wanted version or versions, for messages. */
export function wantedText(wanted: Wanted): string {
  if (wanted.kind === 'latest') return 'latest';
  if (wanted.kind === 'named') return versionText(wanted.version);
  return `${versionText(wanted.oldest)} to ${versionText(wanted.newest)}`;
}
