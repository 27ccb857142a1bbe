import { messageOf } from '../text/print.ts';
import { ConnectionError } from './errors.ts';

/** Waits; in Node.js and in browsers. @throws the reason of the signal */
export function pause(durationMs: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.reject(signal.reason);
  const leave = () => reject(signal?.reason);
  const timer = setTimeout(resolve, durationMs);
  signal?.addEventListener('abort', leave, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  });
}

/** The standard `fetch`, or a function that works like it. */
export type Fetch = typeof globalThis.fetch;

/** A request as it is sent. */
type WireRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** An answer with its whole body. */
export type WireAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** Whether the request was carried out. A browser shows a redirect that is not followed as status 0. */
export const isDone = ({ status }: WireAnswer): boolean => status >= 200 && status < 300;

/**
 * Refuses a text that cannot be sent as the value of a header; white space around it is left out. The text is not shown, since it may be a
 * token.
 *
 * @param what the text, for the message
 * @throws TypeError
 */
export function checkHeaderValue(what: string, text: string): void {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text.trim()))
    throw new TypeError(`${what} has a character that no header may have: a control character, or one beyond Latin-1.`);
}

/**
 * The address of a server as the user has written it.
 *
 * @param what the setting, for the message
 * @throws TypeError if no request can be sent there
 */
export function checkedAddress(what: string, address: string): string {
  if (!/^https?:\/\/[^/\s]\S*$/i.test(address) || !URL.canParse(address))
    throw new TypeError(`The ${what} "${address}" is no URL. Write it as http://host:port.`);
  // It is not shown, since it may have a password.
  if (/^[^/]*\/\/[^/]*@|[?#]/.test(address))
    throw new TypeError(`The ${what} may have no user, no query and no fragment. Write it as http://host:port.`);
  return address;
}

/**
 * Sends a request once and reads the whole answer.
 *
 * @throws ConnectionError if there was no answer, or the reason of the signal; TypeError for a header that cannot be sent
 */
export async function send(fetch: Fetch, request: WireRequest, signal: AbortSignal): Promise<WireAnswer> {
  const { method, url, headers, body } = request;
  for (const [name, value] of Object.entries(headers)) checkHeaderValue(name, value);
  try {
    const response = await fetch(url, {
      method,
      headers,
      signal,
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // A function that replaces the global one may support more.
    if (error instanceof ConnectionError) throw error;
    throw lost(url, error);
  }
}

/** Error codes of failures before anything was sent. */
const unsentCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there. Check the address, and that the service runs.',
  ENOTFOUND: 'the name of the host is unknown. Check its spelling.',
  EAI_AGAIN: 'the name of the host cannot be looked up now. Check the network.',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer. Check the address and the network.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is that of another host. Use a name that the certificate has.',
  CERT_HAS_EXPIRED: 'its certificate, or that of an authority, has expired. The server needs a new one.',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet. Check the clocks.',
};

function lost(url: string, error: unknown): Error {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = codeOf(cause);
  const unsent = unsentCodes.has(code) || isCertificateProblem(code) || isNoTls(code) || isBarredPort(cause);
  const reason =
    remedies[code] ??
    (isCertificateProblem(code)
      ? `its certificate is not trusted (${code}). Name the authority's certificate in NODE_EXTRA_CA_CERTS, or OS_CACERT for the command.`
      : isNoTls(code)
        ? `it does not answer by TLS (${code}). If the service speaks HTTP there, the address begins with http://.`
        : isBarredPort(cause)
          ? 'fetch, as browsers, never connects to this port, which is that of another protocol. Let the service listen on another one.'
          : `the connection was lost (${messageOf(cause)}).`);
  return new ConnectionError(`No answer from ${new URL(url).origin}: ${reason}`, { unsent, cause: error });
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

const isCertificateProblem = (code: string): boolean => /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code);

/** What answers is no TLS, such as an HTTP server. */
const isNoTls = (code: string): boolean => /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/.test(code);

/** The port is one of the list that the standard of fetch forbids, such as 6000 and 10080. */
const isBarredPort = (cause: unknown): boolean => cause instanceof Error && cause.message === 'bad port';

/** Whether another attempt can help. It cannot if the certificate is wrong, there is no TLS, or the port is forbidden. */
export const isPassing = (error: ConnectionError): boolean => {
  const cause = error.cause instanceof Error ? error.cause.cause : undefined;
  return !isCertificateProblem(codeOf(cause)) && !isNoTls(codeOf(cause)) && !isBarredPort(cause);
};
