import { VersionError } from './errors.ts';
import { newestMinor } from './microversions.ts';
import { entityTagsSince, type Operation } from './operation.ts';
import type { WireAnswer } from './send.ts';
import {
  acceptsOldest,
  common,
  type MinorRange,
  rangeOf,
  remember,
  type Spoken,
  spokenBy,
  type Told,
  toldBy,
  type Wanted,
  wantedText,
} from './version_request.ts';

/** Sends an operation in the form of a minor version, asking for a version: `1.N`, or `latest`. */
type Exchange = (operation: Operation, minor: number, version: string) => Promise<WireAnswer>;

/** GET / needs no authentication, works at every version of the server, and changes nothing. */
const discovery: Operation = { method: 'GET', path: '/' };

/**
 * Sends an operation at the wanted version. If none is named, it tries the newest version first. If the server refuses
 * that, it sends the operation once more, at the newest version that both know. It remembers the versions of a server
 * by endpoint.
 *
 * Before the first write it asks the server for its versions, so that no write is sent at a version that was not
 * negotiated.
 *
 * @throws VersionError if no version is acceptable, or if the operation does not exist at the version
 */
export async function negotiated(
  endpoint: string,
  wanted: Wanted,
  operation: Operation,
  exchange: Exchange,
): Promise<{ readonly answer: WireAnswer; readonly minor: number }> {
  if ((operation.method !== 'GET' || wanted.kind === 'latest') && !isSettled(wanted, spokenBy(endpoint))) {
    await discover(endpoint, wanted, exchange);
  }
  let asked = choose(wanted, spokenBy(endpoint));
  for (let isFallback = false; ; isFallback = true) {
    checkExists(endpoint, operation, asked);
    const answer = await exchange(operation, asked, wanted.kind === 'latest' ? 'latest' : `1.${asked}`);
    const told = toldBy(answer.headers, answer.status, answer.text);
    learn(endpoint, told);
    if (told.minor === undefined && answer.status === 406 && told.spoken !== undefined) {
      const best = wanted.kind === 'negotiated' ? common(wanted, told.spoken) : undefined;
      if (best === undefined || isFallback) throw unsupported(endpoint, wanted, told.spoken);
      asked = best;
      continue;
    }
    if (told.minor !== undefined) return { answer, minor: told.minor };
    await judgeSilence(endpoint, wanted, operation, answer, exchange);
    return { answer, minor: spokenBy(endpoint) === 'none' ? 0 : asked };
  }
}

/**
 * Whether enough is known about a server to send it a write, or to send `latest`, which also needs the form of a
 * version.
 */
function isSettled(wanted: Wanted, spoken: Spoken | undefined): boolean {
  if (spoken === 'none') return acceptsOldest(wanted);
  return typeof spoken === 'object' || (spoken === 'unknown range' && wanted.kind !== 'latest');
}

/** Finds out which versions a server speaks. @throws VersionError if none of them is acceptable */
async function discover(endpoint: string, wanted: Wanted, exchange: Exchange): Promise<void> {
  const asked = wanted.kind === 'negotiated' ? wanted.newest : wanted.kind === 'named' ? wanted.minor : newestMinor;
  const answer = await exchange(discovery, asked, wanted.kind === 'latest' ? 'latest' : `1.${asked}`);
  const told = toldBy(answer.headers, answer.status, answer.text);
  if (told.spoken !== undefined || told.minor !== undefined) {
    learn(endpoint, told);
    if (told.spoken === undefined && told.minor !== undefined && wanted.kind === 'latest') {
      remember(endpoint, { min: 0, max: told.minor });
    }
    if (told.minor !== undefined || told.spoken === undefined) return;
    if (wanted.kind === 'negotiated' && common(wanted, told.spoken) !== undefined) return;
    throw unsupported(endpoint, wanted, told.spoken);
  }
  // A server without this path, or with another document there, does not know microversions. Other errors say nothing
  // about that.
  if (answer.status < 300 || answer.status === 404 || answer.status === 405) {
    remember(endpoint, 'none');
    if (!acceptsOldest(wanted)) throw withoutMicroversions(endpoint, wanted);
  }
}

/** The version to ask for, from what is known about the server. */
function choose(wanted: Wanted, spoken: Spoken | undefined): number {
  if (wanted.kind === 'named') return wanted.minor;
  const newest = wanted.kind === 'latest' ? newestMinor : wanted.newest;
  if (spoken === undefined || spoken === 'unknown range') return newest;
  if (spoken === 'none') return acceptsOldest(wanted) ? 0 : newest;
  // If there is no version in common, the request is sent all the same: the server may have been upgraded. If not, it
  // refuses.
  const oldest = wanted.kind === 'latest' ? 0 : wanted.oldest;
  return common({ oldest, newest }, spoken) ?? newest;
}

function learn(endpoint: string, { minor, spoken }: Told): void {
  const before = spokenBy(endpoint);
  if (spoken !== undefined) remember(endpoint, spoken);
  else if (minor !== undefined && (typeof before !== 'object' || before.max < minor))
    remember(endpoint, 'unknown range');
}

/**
 * Handles an answer without a version: the server knows no versions, or the request failed before the version mattered.
 */
async function judgeSilence(
  endpoint: string,
  wanted: Wanted,
  operation: Operation,
  { status }: WireAnswer,
  exchange: Exchange,
): Promise<void> {
  if (status < 300) remember(endpoint, 'none');
  else if (status === 400 || status === 404 || status === 405) {
    if (spokenBy(endpoint) === undefined) await discover(endpoint, wanted, exchange);
  }
  if (spokenBy(endpoint) !== 'none') return;
  if (!acceptsOldest(wanted)) throw withoutMicroversions(endpoint, wanted);
  checkExists(endpoint, operation, 0);
}

function checkExists(endpoint: string, operation: Operation, minor: number): void {
  const { method, path, since = 0, until = newestMinor, query = [] } = operation;
  if (minor < since) throw tooOld(endpoint, `${method} ${path}`, since, minor, spokenBy(endpoint));
  if (minor > until) throw tooNew(endpoint, `${method} ${path}`, until, minor);
  if (operation.ifMatch !== undefined && minor < entityTagsSince) {
    throw tooOld(endpoint, 'ifMatch', entityTagsSince, minor, spokenBy(endpoint));
  }
  for (const { name, value, since: paramSince = 0 } of query) {
    if (minor < paramSince) throw tooOld(endpoint, `${name}=${value}`, paramSince, minor, spokenBy(endpoint));
  }
}

/** The server refused the version, and no other version is acceptable. */
function unsupported(endpoint: string, wanted: Wanted, spoken: MinorRange): VersionError {
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
const withoutMicroversions = (endpoint: string, wanted: Wanted): VersionError =>
  new VersionError(
    'no microversions',
    `The server at ${endpoint} knows no microversions, so that it cannot be used with ${wantedText(wanted)} as was asked ` +
      'for. Ask for none, which goes on with 1.0, or upgrade the server.',
  );

/** The operation or parameter exists only from a newer version on. */
function tooOld(endpoint: string, what: string, since: number, minor: number, spoken?: Spoken): VersionError {
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
const tooNew = (endpoint: string, what: string, until: number, minor: number): VersionError =>
  new VersionError(
    'unsupported',
    `${what} ended with microversion 1.${until}, and ${endpoint} is spoken to in 1.${minor}. Ask for 1.${until}.`,
  );
