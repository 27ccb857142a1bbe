import type { Auth } from './auth.ts';
import { ApiError, AuthError, ConnectionError, PlacementError } from './errors.ts';
import { negotiated } from './negotiation.ts';
import { type Call, type Operation, type Reply, targetOf, type WriteOptions } from './operation.ts';
import { refusalOf } from './refusal.ts';
import { type Attempt, repeatedly } from './repeat.ts';
import { retryAfterMs } from './retry_after.ts';
import { type Fetch, isDone, isPassing, send, type WireAnswer } from './send.ts';
import type { Wanted } from './version_request.ts';

/** The settings that all calls of a client share. */
export type Connection = {
  /** The URL of the service; undefined if it comes from the catalog. */
  readonly endpoint: string | undefined;
  readonly auth: Auth;
  readonly wanted: Wanted;
  readonly deadlineMs: number;
  readonly attempts: number;
  readonly fetch: Fetch;
};

/**
 * Makes the function that all calls go through. It authenticates, negotiates the version, repeats a request after a
 * temporary failure, and throws ApiError for an answer with an error status.
 */
export function openCall(connection: Connection): Call {
  return async function call(operation: Operation, options: WriteOptions = {}): Promise<Reply> {
    const { signal, deadlineMs = connection.deadlineMs, ifMatch = operation.ifMatch } = options;
    const { waitMs } = operation;
    const waitsUntilMs = waitMs === undefined ? undefined : performance.now() + waitMs;
    if (!operation.path.isWellFormed())
      throw new TypeError(
        `No request can be sent to ${operation.path.toWellFormed()}: it has half of a surrogate pair.`,
      );
    // fetch would take it out, and send the request to another path. Escaping does not help.
    if (dots.test(operation.path))
      throw new TypeError(`No request can be sent to ${operation.path}: a part of a path is neither . nor ..`);
    // The service knows no such path, and would say so, not that a name is missing.
    if (emptyPart.test(operation.path)) throw new TypeError(`A name in the path ${operation.path} is empty.`);
    const asked = { ...operation, ifMatch, waitsUntilMs };
    const repeating =
      waitMs === undefined
        ? { deadlineMs, attempts: connection.attempts }
        : {
            deadlineMs: waitMs + deadlineMs,
            repeatMs: waitMs,
            // Proxies end a request that waits for long, and Node.js does so after 300 s. So many attempts are usual.
            attempts: Number.POSITIVE_INFINITY,
            longestWaitMs: quickMs,
          };
    return repeatedly((number, both) => attempt(connection, asked, number, both), { ...repeating, signal });
  };
}

/** A part `.` or `..` before the query, also as `%2e`; fetch takes `\` for `/`. */
const dots = /^[^?#]*[/\\](?:\.|%2e){1,2}(?=[/\\?#]|$)/i;

/** An empty part, before the query, of a path that is not `/` alone. */
const emptyPart = /^\/[^?#]*\/(?=[/?#]|$)|^\/\//;

/** How soon a request that waits is sent again, in milliseconds: until then other claims may be placed before it. */
const quickMs = 2_000;

/** An operation with the time until which the server may wait, by `performance.now()`. */
type TimedOperation = Operation & { readonly waitsUntilMs?: number | undefined };

async function attempt(
  connection: Connection,
  operation: TimedOperation,
  number: number,
  signal: AbortSignal,
): Promise<Attempt<Reply>> {
  const { auth, wanted, fetch } = connection;
  let sentAt: number | undefined;
  const mayRepeat = (): boolean => sentAt === undefined || isRepeatable(operation, sentAt);
  try {
    const endpoint = await endpointOf(connection, signal);
    const exchange = async (sent: Operation, version: number, asked: string): Promise<WireAnswer> => {
      const request = {
        method: sent.method,
        url: endpoint + targetOf(sent),
        ...bodyOf(sent, version),
      };
      const headers = async () => ({
        ...(await headersOf(request.body, asked)),
        ...conditionOf(sent),
        ...(sent === operation ? preferenceOf(operation) : {}),
        ...sent.headers,
      });
      if (sent === operation) sentAt = version;
      const first = await headers();
      const answer = await send(fetch, { ...request, headers: first }, signal);
      // The server does nothing for a refused token, so the request can safely be sent again with a new token.
      if (answer.status !== 401 || !auth.refused(first)) return answer;
      return send(fetch, { ...request, headers: await headers() }, signal);
    };
    const headersOf = async (body: string | undefined, asked: string) => ({
      ...(await auth.headers(signal)),
      Accept: 'application/json',
      'OpenStack-API-Version': `placement ${asked}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    });
    const { answer, version } = await negotiated(endpoint, wanted, operation, exchange);
    const name = `${operation.method} ${operation.path}`;
    if (isDone(answer)) return { done: { ...parsed(answer, endpoint + operation.path), version } };
    const error = new ApiError(name, refusalOf(answer), number);
    if (!passing.has(answer.status) || !mayRepeat()) throw error;
    return { failed: () => raise(error), afterMs: retryAfterMs(answer.headers) };
  } catch (error) {
    // Nothing was sent, or only what was refused for want of a token.
    if (error instanceof AuthError && passing.has(error.status ?? 0)) return { failed: () => raise(error) };
    if (!(error instanceof ConnectionError) || !isPassing(error) || !(error.unsent || mayRepeat())) throw error;
    return { failed: () => raise(error) };
  }
}

/** Statuses of a service that is overloaded or shutting down, and of proxies that cannot reach it. */
const passing: ReadonlySet<number> = new Set([502, 503, 504]);

const isRepeatable = ({ method, repeatable }: Operation, version: number): boolean =>
  repeatable?.(version) ?? method === 'GET';

async function endpointOf({ endpoint, auth }: Connection, signal: AbortSignal): Promise<string> {
  const found = endpoint ?? (await auth.endpoint?.(signal));
  if (found === undefined) throw new TypeError('The endpoint is missing. Give it, or an auth whose catalog has it.');
  return found.replace(/\/+$/, '');
}

function bodyOf({ body }: Operation, version: number): { readonly body?: string } {
  return body === undefined ? {} : { body: JSON.stringify(body(version)) };
}

function conditionOf({ ifMatch }: Operation): Readonly<Record<string, string>> {
  if (ifMatch === undefined) return {};
  return { 'If-Match': typeof ifMatch === 'string' ? ifMatch : ifMatch.join(', ') };
}

/** Requests the server to wait for the remaining time; at least 1 s, because it refuses 0. */
function preferenceOf({ waitsUntilMs }: TimedOperation): Readonly<Record<string, string>> {
  if (waitsUntilMs === undefined) return {};
  const leftMs = Math.round(waitsUntilMs - performance.now());
  return { Prefer: `wait=${Math.max(1, Math.ceil(leftMs / 1000))}` };
}

function parsed({ status, headers, text }: WireAnswer, url: string): Omit<Reply, 'version'> {
  if (text === '') return { status, headers, body: undefined };
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { status, headers, body };
  } catch {
    // It is no JSON at all.
  }
  throw new PlacementError(`${url} answered, but no JSON object: it is no placement service. Check the endpoint.`);
}

function raise(error: Error): never {
  throw error;
}
