import http from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import type { Config } from '../config/config.ts';
import { inUrl } from '../http/server/address.ts';
import { messageOf } from '../text/print.ts';
import { socketFileOf } from '../text/socket_address.ts';

/** Longer than /readyz takes to find out that the database does not answer, and shorter than health checks usually wait. */
const timeoutMs = 4_000;

/**
 * Checks at the address of this configuration whether the service is ready.
 *
 * @returns a sentence with the result
 * @throws Error with the reason if it is not, or does not answer
 */
export async function checkReadiness({ api, ssl }: Pick<Config, 'api' | 'ssl'>): Promise<string> {
  const file = socketFileOf(api.host);
  if (file === undefined && api.port === 0)
    throw new Error('[api] port = 0 is any free port, so it is not known which port to check. Name it by --port.');
  const host = reachable[api.host] ?? api.host;
  const scheme = ssl.certFile === undefined ? 'http' : 'https';
  const address = file === undefined ? `${scheme}://${inUrl(host, api.port)}` : api.host;
  const { status, body } = await requestReadiness(
    scheme,
    file === undefined ? { host, port: api.port } : { socketPath: file },
  ).catch((error: unknown) => {
    throw new Error(`The service does not answer at ${address}: ${reasonOf(error)}.`, { cause: error });
  });
  if (status !== 200)
    throw new Error(`The service at ${address} is not ready: ${body.trim() || `it answers ${status}`}.`);
  return `The service at ${address} is ready.`;
}

/** Where a process of this machine reaches one that listens on all addresses. */
const reachable: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1', '': 'localhost' };

/** The certificate is not checked: it is for the public name of the service, and nothing secret is sent. */
function requestReadiness(
  scheme: 'http' | 'https',
  address: { readonly host: string; readonly port: number } | { readonly socketPath: string },
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const request = (scheme === 'http' ? http : https).request(
      {
        ...address,
        path: '/readyz',
        // A name that [api] allowed_hosts need not have.
        headers: { host: 'localhost' },
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(timeoutMs),
      },
      (answer) => text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject),
    );
    request.on('error', reject).end();
  });
}

/** The error of a request that was aborted by its signal is an AbortError. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && error.name === 'AbortError' ? `not within ${timeoutMs / 1000} s` : messageOf(error);
