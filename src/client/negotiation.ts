import { VersionError } from './errors.ts';
import { newestKnown, newestOfOpenstack, numberOfVersion, oldestKnown, versionText } from './microversions.ts';
import { entityTagsSince, type Operation } from './operation.ts';
import { isDone, type WireAnswer } from './send.ts';
import {
  acceptsOldest,
  common,
  type KnownVersions,
  knownVersionsOf,
  rangeOf,
  readReportedVersions,
  remember,
  type Span,
  type Wanted,
  wantedText,
  withReportedVersions,
} from './version_request.ts';

/** Sends an operation in the form of a version, and requests a version: `1.N`, `2.N`, or `latest`. */
type Exchange = (operation: Operation, version: number, asked: string) => Promise<WireAnswer>;

/** GET / needs no authentication, works at every version of the server, and changes nothing. */
const discovery: Operation = { method: 'GET', path: '/' };

/**
 * Sends an operation at the wanted version. If none is named, it tries the newest version first. If the server refuses
 * that, it sends the operation once more, at the newest version that both know: a lower one of version 2, or one of
 * OpenStack's. It remembers the versions of a server by endpoint.
 *
 * Before the first write it reads the versions of the server, so that no write is sent at a version that was not
 * negotiated.
 *
 * @throws VersionError if no version is acceptable, or if the operation does not exist at the version
 */
export async function negotiated(
  endpoint: string,
  wanted: Wanted,
  operation: Operation,
  exchange: Exchange,
): Promise<{ readonly answer: WireAnswer; readonly version: number }> {
  const spoken = knownVersionsOf(endpoint);
  // What was taken for a server without microversions may have been a proxy while the server was unavailable.
  const needsMore = operation.method !== 'GET' || (operation.since ?? oldestKnown) > oldestKnown;
  if (
    (spoken === 'none' && needsMore) ||
    ((operation.method !== 'GET' || wanted.kind === 'latest') && !isSettled(wanted, spoken))
  ) {
    await discover(endpoint, wanted, exchange);
  }
  let asked = choose(wanted, knownVersionsOf(endpoint));
  for (let isFallback = false; ; isFallback = true) {
    checkExists(endpoint, operation, asked);
    const { answer, reported } = await ask(endpoint, wanted, asked, operation, exchange);
    if (reported.version === undefined && answer.status === 406 && reported.span !== undefined) {
      const best = wanted.kind === 'negotiated' ? choiceFor(wanted, knownVersionsOf(endpoint)) : undefined;
      if (best === undefined || isFallback) throw unsupported(endpoint, wanted, reported.span);
      asked = best;
      continue;
    }
    if (reported.version !== undefined) return { answer, version: reported.version };
    await handleUnversioned(endpoint, wanted, operation, answer, exchange);
    return { answer, version: knownVersionsOf(endpoint) === 'none' ? oldestKnown : asked };
  }
}

/** Sends an operation once, and remembers the versions of the server in its answer. */
async function ask(endpoint: string, wanted: Wanted, asked: number, operation: Operation, exchange: Exchange) {
  const isLatest = wanted.kind === 'latest';
  const answer = await exchange(operation, asked, isLatest ? 'latest' : versionText(asked));
  const reported = readReportedVersions(answer.headers, answer.status, answer.text);
  if (reported.version !== undefined || reported.span !== undefined) {
    remember(endpoint, withReportedVersions(knownVersionsOf(endpoint), isLatest ? 'latest' : asked, reported));
  }
  return { answer, reported };
}

/**
 * Whether enough is known about a server to send it a write, or to send `latest`, which also needs the form of a
 * version.
 */
function isSettled(wanted: Wanted, spoken: KnownVersions | undefined): boolean {
  if (spoken === 'none') return acceptsOldest(wanted);
  if (spoken === undefined) return false;
  if (wanted.kind === 'latest') return typeof spoken.openstack === 'object';
  const newest = wanted.kind === 'named' ? wanted.version : wanted.newest;
  return newest > newestOfOpenstack && spoken.second !== 'none'
    ? spoken.second !== undefined
    : spoken.openstack !== undefined;
}

/** Finds out which versions a server speaks. @throws VersionError if none of them is acceptable */
async function discover(endpoint: string, wanted: Wanted, exchange: Exchange): Promise<void> {
  const { answer, reported } = await ask(endpoint, wanted, choose(wanted, undefined), discovery, exchange);
  if (reported.span !== undefined || reported.version !== undefined) {
    if (reported.span === undefined && reported.version !== undefined && wanted.kind === 'latest') {
      remember(endpoint, { openstack: { min: oldestKnown, max: reported.version } });
    }
    if (reported.version !== undefined || reported.span === undefined) return;
    if (wanted.kind === 'negotiated' && choiceFor(wanted, knownVersionsOf(endpoint)) !== undefined) return;
    throw unsupported(endpoint, wanted, reported.span);
  }
  // A server without this path, or with another document there, does not know microversions. Other errors say nothing
  // about that.
  if (
    typeof knownVersionsOf(endpoint) !== 'object' &&
    (isDone(answer) || answer.status === 404 || answer.status === 405)
  ) {
    remember(endpoint, 'none');
    if (!acceptsOldest(wanted)) throw withoutMicroversions(endpoint, wanted);
  }
}

/** The version to request, by what is known about the server. */
function choose(wanted: Wanted, spoken: KnownVersions | undefined): number {
  if (wanted.kind === 'named') return wanted.version;
  const range = wanted.kind === 'latest' ? { oldest: oldestKnown, newest: newestOfOpenstack } : wanted;
  if (spoken === 'none') return acceptsOldest(wanted) ? oldestKnown : range.newest;
  // If there is no version in common, the request is sent all the same: the server may have been upgraded. If not, it
  // refuses.
  return choiceFor(range, spoken) ?? range.newest;
}

/** The newest version in a range that a server may speak, from what is known about it; undefined if there is none. */
function choiceFor(
  { oldest, newest }: { readonly oldest: number; readonly newest: number },
  spoken: KnownVersions | undefined,
): number | undefined {
  const { openstack, second } = typeof spoken === 'object' ? spoken : {};
  if (newest > newestOfOpenstack) {
    if (second === undefined) return newest;
    const best = second === 'none' ? undefined : common({ oldest, newest }, second);
    if (best !== undefined) return best;
  }
  if (oldest > newestOfOpenstack) return undefined;
  const range = { oldest, newest: Math.min(newest, newestOfOpenstack) };
  return typeof openstack === 'object' ? common(range, openstack) : range.newest;
}

/**
 * Handles an answer without a version: the server knows no versions, or the request failed before the version mattered.
 */
async function handleUnversioned(
  endpoint: string,
  wanted: Wanted,
  operation: Operation,
  answer: WireAnswer,
  exchange: Exchange,
): Promise<void> {
  // Of a server that is known to speak versions such an answer is that of a proxy.
  if (knownVersionsOf(endpoint) === undefined) {
    if (isDone(answer)) remember(endpoint, 'none');
    else if ([400, 404, 405].includes(answer.status)) await discover(endpoint, wanted, exchange);
  }
  if (knownVersionsOf(endpoint) !== 'none') return;
  if (!acceptsOldest(wanted)) throw withoutMicroversions(endpoint, wanted);
  checkExists(endpoint, operation, oldestKnown);
}

function checkExists(endpoint: string, operation: Operation, version: number): void {
  const { method, path, since = oldestKnown, until = newestKnown, query = [] } = operation;
  if (version < since) throw tooOld(endpoint, `${method} ${path}`, since, version, knownVersionsOf(endpoint));
  if (version > until) throw tooNew(endpoint, `${method} ${path}`, until, version);
  if (operation.ifMatch !== undefined && version < entityTagsSince) {
    throw tooOld(endpoint, 'ifMatch', entityTagsSince, version, knownVersionsOf(endpoint));
  }
  for (const { name, value, since: paramSince = oldestKnown } of query) {
    if (version < paramSince)
      throw tooOld(endpoint, `${name}=${value}`, paramSince, version, knownVersionsOf(endpoint));
  }
}

/** The server refused the version, and no other version is acceptable. */
function unsupported(endpoint: string, wanted: Wanted, { min, max }: Span): VersionError {
  const server = { min: versionText(min), max: versionText(max) };
  const range = `${server.min} to ${server.max}`;
  if (wanted.kind !== 'negotiated') {
    return new VersionError(
      'unsupported',
      `The server at ${endpoint} speaks microversions ${range}, not ${wantedText(wanted)} as requested. Name one of ` +
        'these, or none, so that client and server find the best.',
      server,
    );
  }
  const remedy = wanted.newest < min ? 'The client is too old: use a newer one.' : 'The server is too old: upgrade it.';
  return new VersionError(
    'unsupported',
    `The server at ${endpoint} speaks microversions ${range}, this client ${wantedText(wanted)}: none in common. ${remedy}`,
    server,
  );
}

/** The server ignored the version, and 1.0 is not acceptable. */
const withoutMicroversions = (endpoint: string, wanted: Wanted): VersionError =>
  new VersionError(
    'no microversions',
    `The server at ${endpoint} knows no microversions, so that it cannot be used with ${wantedText(wanted)} as ` +
      'requested. Name none, which goes on with 1.0, or upgrade the server.',
  );

/** The operation or parameter exists only from a newer version on. */
function tooOld(endpoint: string, what: string, since: number, version: number, spoken?: KnownVersions): VersionError {
  if (spoken === 'none') {
    return new VersionError(
      'too old',
      `${what} needs microversion ${versionText(since)}, and requests to ${endpoint} are at ${versionText(version)}: the server there ` +
        'knows no microversions. If it is no placement service, check the endpoint; otherwise upgrade it.',
    );
  }
  const server = rangeOf(spoken);
  const remedy =
    server !== undefined && numberOfVersion(server.max) >= since
      ? `The server speaks up to ${server.max}: ask for ${versionText(since)} or newer, or name no version.`
      : `Leave it out, or use a server that speaks ${versionText(since)}; [api] max_microversion limits what one speaks.`;
  return new VersionError(
    'too old',
    `${what} needs microversion ${versionText(since)}, and requests to ${endpoint} are at ${versionText(version)}. ${remedy}`,
    server,
  );
}

/** The operation existed only up to an older version. */
const tooNew = (endpoint: string, what: string, until: number, version: number): VersionError =>
  new VersionError(
    'unsupported',
    `${what} ended with microversion ${versionText(until)}, and requests to ${endpoint} are at ${versionText(version)}. ` +
      `Ask for ${versionText(until)}.`,
  );
