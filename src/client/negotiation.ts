import { newestMinor } from './microversions.ts';
import { entityTagsSince, type Operation } from './operation.ts';
import type { WireAnswer } from './send.ts';
import { remember, type Spoken, spokenBy, type Told, toldBy } from './spoken.ts';
import { tooNew, tooOld, unsupported, withoutMicroversions } from './version_problems.ts';
import { acceptsOldest, common, type Wanted } from './version_request.ts';

/** Sends an operation in the form of a minor version, asking for a version: `1.N`, or `latest`. */
export type Exchange = (operation: Operation, minor: number, version: string) => Promise<WireAnswer>;

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
