import type { ErrorCode, Refusal } from './errors.ts';
import type { WireAnswer } from './send.ts';

/**
 * Reads an answer with an error status. It comes from this service, or from a proxy or another program in front of it.
 */
export function refusalOf({ status, headers, text }: WireAnswer): Refusal {
  const error = errorIn(text);
  const title = textAt(error, 'title') ?? titles[status] ?? 'Error';
  return {
    status,
    code: codeAt(error),
    title,
    detail:
      redirected(status, headers) ??
      (plain(textAt(error, 'detail') ?? textAt(error, 'message') ?? '') ||
        (textAt(error, 'detail') === undefined ? fallback(text, title) : title)),
    requestId: textAt(error, 'request_id') ?? headers.get('x-openstack-request-id') ?? undefined,
  };
}

const titles: Readonly<Record<number, string>> = {
  301: 'Moved Permanently',
  302: 'Found',
  307: 'Temporary Redirect',
  308: 'Permanent Redirect',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  406: 'Not Acceptable',
  412: 'Precondition Failed',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

/** Proxies redirect to TLS, or to a page where people log in. */
function redirected(status: number, headers: Headers): string | undefined {
  const location = headers.get('location');
  return status < 300 || status >= 400 || location === null
    ? undefined
    : `The server redirects to ${location}, which is not followed: check the endpoint.`;
}

/** `{"errors": [{...}]}` of the API, `{"message": ...}` of its 401, `{"error": {...}}` of Keystone. */
function errorIn(text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  const errors = fieldOf(body, 'errors');
  return Array.isArray(errors) ? errors[0] : (fieldOf(body, 'error') ?? body);
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;

function textAt(value: unknown, key: string): string | undefined {
  const field = fieldOf(value, key);
  return typeof field === 'string' ? field : undefined;
}

function codeAt(error: unknown): ErrorCode | undefined {
  const code = textAt(error, 'code');
  return code?.startsWith('placement.') ? (code as ErrorCode) : undefined; // openapi.yaml has all codes of the server
}

/** Removes the first sentence of the details, which only repeats the status. */
function plain(detail: string): string {
  const text = detail.replaceAll(/<br *\/?>/g, ' ').trim();
  return text.split('\n\n').at(-1)?.trim() || text;
}

const fallback = (text: string, title: string): string =>
  text
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, 200) || title;
