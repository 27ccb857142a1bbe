import { VersionError } from './errors.ts';
import { type MinorRange, rangeOf, type Spoken } from './spoken.ts';
import { type Wanted, wantedText } from './version_request.ts';

/** The server refused the version, and no other version is acceptable. */
export function unsupported(endpoint: string, wanted: Wanted, spoken: MinorRange): VersionError {
  const range = `1.${spoken.min} to 1.${spoken.max}`;
  if (wanted.kind !== 'negotiated') {
    return new VersionError(
      'unsupported',
      `The server at ${endpoint} speaks microversions ${range}, not ${wantedText(wanted)} as was asked for. Name one of ` +
        'these, or none, so that client and server find the best.',
      rangeOf(spoken),
    );
  }
  const remedy =
    wanted.newest < spoken.min ? 'The client is too old: use a newer one.' : 'The server is too old: upgrade it.';
  return new VersionError(
    'unsupported',
    `The server at ${endpoint} speaks microversions ${range}, this client ${wantedText(wanted)}: none in common. ${remedy}`,
    rangeOf(spoken),
  );
}

/** The server ignored the version, and 1.0 is not acceptable. */
export const withoutMicroversions = (endpoint: string, wanted: Wanted): VersionError =>
  new VersionError(
    'no microversions',
    `The server at ${endpoint} knows no microversions, so that it cannot be used with ${wantedText(wanted)} as was asked ` +
      'for. Ask for none, which goes on with 1.0, or upgrade the server.',
  );

/** The operation or parameter exists only from a newer version on. */
export function tooOld(endpoint: string, what: string, since: number, minor: number, spoken?: Spoken): VersionError {
  const remedy =
    typeof spoken === 'object' && spoken.max >= since
      ? `The server speaks up to 1.${spoken.max}: ask for 1.${since} or newer, or name no version.`
      : `Leave it out, or use a server that speaks 1.${since}.`;
  return new VersionError(
    'too old',
    `${what} needs microversion 1.${since}, and ${endpoint} is spoken to in 1.${minor}. ${remedy}`,
    rangeOf(spoken),
  );
}

/** The operation existed only up to an older version. */
export const tooNew = (endpoint: string, what: string, until: number, minor: number): VersionError =>
  new VersionError(
    'unsupported',
    `${what} ended with microversion 1.${until}, and ${endpoint} is spoken to in 1.${minor}. Ask for 1.${until}.`,
  );
