import { at } from '../support/requests.ts';

/** What came back; status 0 if the connection broke: then it is unknown whether the request was executed. */
export type Reply = {
  readonly status: number;
  readonly json: unknown;
  readonly text: string;
  readonly headers: Headers;
  /** How long it took. */
  readonly ms: number;
};

/** Sends a request of microversion 2.7, each to any process of the service. */
export type Send = (
  method: string,
  path: string,
  body?: unknown,
  more?: Readonly<Record<string, string>>,
) => Promise<Reply>;

export const sendingTo =
  (url: string): Send =>
  async (method, path, body, more = {}) => {
    const headers = {
      'x-auth-token': 'admin',
      'openstack-api-version': 'placement 2.7',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...more,
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const startedMs = Date.now();
    const took = () => ({ ms: Date.now() - startedMs });
    try {
      const response = await fetch(`${url}${path}`, { method, headers, ...sent, signal: AbortSignal.timeout(60_000) });
      const text = await response.text();
      const isJson = response.headers.get('content-type') === 'application/json' && text !== '';
      const json = isJson ? JSON.parse(text) : undefined;
      return { status: response.status, json, text, headers: response.headers, ...took() };
    } catch (error) {
      return { status: 0, json: undefined, text: String(error), headers: new Headers(), ...took() };
    }
  };

/** How long an answer may take: `statement_timeout`, what the service waits in addition, and a busy machine. */
const patienceMs = 40_000;

/** What is wrong with an answer during any fault; undefined if nothing is. A 502 of HAProxy means: a process ended. */
export function complaintAbout(reply: Reply): string | undefined {
  const { status, text, headers, ms } = reply;
  const isUsual = status === 404 || status === 409 || status === 410 || isOverLimit(reply);
  if (status === 500 || (status >= 400 && status < 500 && !isUsual)) return `${status} ${text}`;
  if (status === 503 && !headers.has('retry-after')) return `503 without Retry-After: ${text}`;
  if (ms > patienceMs) return `an answer after ${ms} ms: ${status} ${text}`;
  return undefined;
}

/** Whether the answer says that the request was, or was not, executed. HAProxy's own 502 and 504 do not say it. */
export const isKnown = ({ status }: Reply): boolean => status !== 0 && status < 500;

export const isSuccess = ({ status }: Reply): boolean => status >= 200 && status < 300;

/** Whether a claim was refused because its project has no more left of a limit. */
export const isOverLimit = ({ status, json }: Reply): boolean =>
  status === 403 && at(json, 'errors', 0, 'code') === 'placement.limit_exceeded';

/** The provider of the only allocation in an answer of `GET /allocations/{consumer}`. */
export const hostIn = ({ json }: Reply): string | undefined => Object.keys(Object(at(json, 'allocations')))[0];
