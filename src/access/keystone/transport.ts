import http, { type IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAnswer, trustedAuthorities } from '../outgoing.ts';
import type { TlsOptions } from './settings.ts';

/** A request to Keystone's API. */
export type KeystoneRequest = {
  readonly method: 'GET' | 'POST';
  /** Below the address of the API, `/auth/tokens`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: unknown;
};

/** An answer of Keystone, whatever its status. */
export type KeystoneAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
};

/** Sends requests to Keystone over connections that are kept open. */
export type Transport = {
  /**
   * @param deadlineMs by `performance.now()`: until then a request may be repeated
   * @throws KeystoneUnreachable
   */
  send(request: KeystoneRequest, deadlineMs: number): Promise<KeystoneAnswer>;
  close(): void;
};

/** A request to Keystone, and how it ended. */
export type KeystoneAttempt = { readonly status: number | undefined; readonly seconds: number };

/** Keystone did not answer, after all retries. */
export class KeystoneUnreachable extends Error {}

/** The address of Keystone, and how long a request waits for its answer. */
export type TransportOptions = {
  /** The address of the API, `http://127.0.0.1:5000/v3`. */
  readonly url: string;
  /** Read for each new connection, since certificates are renewed. @throws Error where a file cannot be read */
  readonly tls: () => TlsOptions;
  /** How long one attempt may take, in milliseconds. */
  readonly timeoutMs: number;
  /** What decides how long, for the error of an attempt that took longer. */
  readonly timeoutSource: string;
  /** How often a request without an answer is repeated: after half a second, one second, two ... */
  readonly maxRetries: number;
  /** How many connections there are at most. */
  readonly maxConnections: number;
  /** Called after each attempt. */
  readonly onAttempt: (attempt: KeystoneAttempt) => void;
};

const firstDelayMs = 500;
const longestDelayMs = 60_000;
/** The longest answer that is read. Catalogs of large clouds have some hundred kilobytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

/** Verifies each new connection by the present files; while these cannot be read, by the last ones that could. */
class SecureAgent extends https.Agent {
  readonly #read: () => TlsOptions;
  #tls: TlsOptions;

  constructor(settings: https.AgentOptions, first: TlsOptions, read: () => TlsOptions) {
    super(settings);
    this.#tls = first;
    this.#read = read;
  }

  override createConnection(...[options, callback]: Parameters<https.Agent['createConnection']>) {
    try {
      this.#tls = this.#read();
    } catch {
      // A file is being replaced. If the former ones are wrong, the attempt fails, and its error says so.
    }
    return super.createConnection({ ...options, ca: trustedAuthorities(), ...this.#tls }, callback);
  }
}

/** Opens no connection before the first request. @throws Error where a file of `tls` cannot be read */
export function openTransport(options: TransportOptions): Transport {
  const { url, tls, timeoutMs, timeoutSource, maxRetries, maxConnections, onAttempt } = options;
  const settings = { keepAlive: true, maxSockets: maxConnections };
  const secure = url.startsWith('https:');
  const first = tls(); // a file that is missing is found at the start, whatever the URL
  const agent = secure ? new SecureAgent(settings, first, tls) : new http.Agent(settings);
  const open = secure ? https.request : http.request;

  function attempt({ method, path, headers, json }: KeystoneRequest, withinMs: number): Promise<KeystoneAnswer> {
    const body = json === undefined ? undefined : JSON.stringify(json);
    return new Promise((resolve, reject) => {
      const request = open(`${url}${path}`, {
        method,
        agent,
        signal: AbortSignal.timeout(withinMs),
        headers: {
          accept: 'application/json',
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      });
      request.on('error', (error: NodeJS.ErrnoException) =>
        // Keystone may have closed an idle connection just now: then the request never reached it.
        reject(request.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error),
      );
      request.on('response', (response) => {
        const tooLong = () => new Error(`its answer has more than ${maxAnswerBytes} bytes`);
        readAnswer(response, maxAnswerBytes, tooLong).then(
          (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
          reject,
        );
      });
      request.end(body);
    });
  }

  async function send(request: KeystoneRequest, deadlineMs: number): Promise<KeystoneAnswer> {
    for (let retries = 0, delayMs = firstDelayMs; ; ) {
      const startedMs = performance.now();
      const withinMs = Math.max(1, Math.ceil(Math.min(timeoutMs, deadlineMs - startedMs)));
      const ended = (status: number | undefined) =>
        onAttempt({ status, seconds: (performance.now() - startedMs) / 1000 });
      try {
        const answer = await attempt(request, withinMs);
        ended(answer.status);
        return answer;
      } catch (error) {
        if (error instanceof StaleConnection) continue;
        ended(undefined);
        if (retries === maxRetries || performance.now() + delayMs >= deadlineMs) {
          throw new KeystoneUnreachable(describe(error, url, withinMs, timeoutSource), { cause: error });
        }
        await sleep(delayMs);
        retries += 1;
        delayMs = Math.min(delayMs * 2, longestDelayMs);
      }
    }
  }

  return { send, close: () => agent.destroy() };
}

class StaleConnection extends Error {}

function describe(error: unknown, url: string, withinMs: number, timeoutSource: string): string {
  const { name, code, message } = error as NodeJS.ErrnoException; // what node:http emits
  const reason =
    name === 'AbortError' || name === 'TimeoutError'
      ? `it did not answer within ${Math.ceil(withinMs / 100) / 10} s (${timeoutSource})`
      : message || code || 'no reason was given'; // an AggregateError has a code only
  return `Keystone cannot be reached at ${url}: ${reason}.`;
}
