/** Exchanges for tests. A sample has only the parts that matter for the test. */
import { checkExchange, type Exchange, type Headers } from './exchange.ts';

export const PROVIDER = '4e8e5957-649f-477b-9e5b-f1f75b21c03c';
export const CHILD = '9a1f1d7e-8b2c-4a53-8b6a-20f2c2b8f7e1';
export const CONSUMER = '30328d13-e299-4a93-a102-61e4ccabe474';
const REQUEST_ID = 'req-6dd2bf3c-c4d1-4b7b-9a3f-1f7e6a0b2c11';
const DATE = 'Wed, 21 Feb 2018 16:33:00 GMT';

export type Sample = Readonly<{
  /** The request's body, sent as JSON. */
  body?: unknown;
  status: number;
  /** The answer's body, sent as JSON. */
  answer?: unknown;
  location?: string;
  /** The answer has Cache-Control and Last-Modified. */
  dated?: boolean;
  /** Headers of the request, and of the answer, that differ from the usual ones. Undefined removes a header. */
  request?: Readonly<Record<string, string | undefined>>;
  response?: Readonly<Record<string, string | undefined>>;
}>;

function present(headers: Readonly<Record<string, string | undefined>>): Headers {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** The body of an error at 1.`minor`. */
export function error(minor: number, status: number, code = 'placement.undefined_code', more: object = {}) {
  const fields = { status, title: 'A title', detail: 'A detail', request_id: REQUEST_ID, ...more };
  return { errors: [minor >= 23 ? { ...fields, code } : fields] };
}

function exchange(minor: number, line: string, sample: Sample): Exchange {
  const [method = '', path = ''] = line.split(' ');
  const version = `placement 1.${minor}`;
  return {
    method,
    path,
    requestHeaders: present({
      'X-Auth-Token': 'admin',
      'OpenStack-API-Version': version,
      'Content-Type': sample.body === undefined ? undefined : 'application/json',
      ...sample.request,
    }),
    ...(sample.body === undefined ? {} : { requestBody: JSON.stringify(sample.body) }),
    status: sample.status,
    responseHeaders: present({
      'openstack-api-version': version,
      'openstack-api-minimum-version': 'placement 1.0',
      'openstack-api-maximum-version': 'placement 1.39',
      vary: 'openstack-api-version',
      'x-openstack-request-id': REQUEST_ID,
      'content-type': sample.answer === undefined ? undefined : 'application/json',
      location: sample.location,
      'cache-control': sample.dated ? 'no-cache' : undefined,
      'last-modified': sample.dated ? DATE : undefined,
      ...sample.response,
    }),
    ...(sample.answer === undefined ? {} : { responseBody: JSON.stringify(sample.answer) }),
  };
}

/** The differences that checkExchange finds in a sample at 1.`minor`. */
export function complaints(minor: number, line: string, sample: Sample): readonly string[] {
  return checkExchange(exchange(minor, line, sample));
}

/** The bodies of provider links at 1.`minor`. */
export function links(minor: number) {
  const parts = [
    ['inventories', 0],
    ['usages', 0],
    ['aggregates', 1],
    ['traits', 6],
    ['allocations', 11],
  ] as const;
  const base = `/resource_providers/${PROVIDER}`;
  const further = parts.flatMap(([rel, since]) => (minor >= since ? [{ rel, href: `${base}/${rel}` }] : []));
  return [{ rel: 'self', href: base }, ...further];
}
