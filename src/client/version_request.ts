import { VersionError } from './errors.ts';
import { type Microversion, newestMinor } from './microversions.ts';

/** Which version the client asks for. Minor versions are the N of `1.N`. */
export type Wanted =
  /** No version is named: use the newest version in this range that both sides know. */
  | { readonly kind: 'negotiated'; readonly oldest: number; readonly newest: number }
  /** The program named this version: no other is acceptable. */
  | { readonly kind: 'named'; readonly minor: number }
  /** The newest version of the server. */
  | { readonly kind: 'latest' };

/** Which version the program wants. */
export type VersionOptions = {
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
