import http from 'node:http';
import { versionText } from '../../src/placement/versions.ts';
import type { Action } from './action.ts';
import type { Reply } from './history.ts';

/** What a request sends. */
export type Request = Pick<Action, 'method' | 'path' | 'microversion' | 'body' | 'ifMatch'> & {
  readonly prefer?: string;
};

/** A client of one server, which may be a broken one. */
export type Connection = {
  /** Undefined if the outcome is unknown: the connection broke, the answer took too long, or it was a 5xx. */
  send(request: Request): Promise<Reply | undefined>;
  close(): void;
};

/** What came back: a status, or `cut` where nothing did. */
export type Outcome = number | 'cut';

/** @param watch called with each outcome */
export function connectTo(
  url: string,
  {
    watch,
    token = 'admin',
    timeoutMs = 30_000,
  }: {
    readonly token?: string;
    readonly watch?: (outcome: Outcome, request: Request, reply?: Reply) => void;
    readonly timeoutMs?: number;
  } = {},
): Connection {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  const { hostname, port } = new URL(url);
  const exchange = ({ method, path, microversion, body, ifMatch, prefer }: Request): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        'x-auth-token': token,
        'x-roles': 'admin,service',
        'openstack-api-version': `placement ${versionText(microversion)}`,
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...(prefer === undefined ? {} : { prefer }),
        ...(payload === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
      };
      const signal = AbortSignal.timeout(timeoutMs);
      const request = http.request({ agent, hostname, port, method, path, headers, signal }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers['content-type'] === 'application/json' && text !== '';
          const { etag } = response.headers;
          try {
            resolve({ status: response.statusCode ?? 0, etag, body: isJson ? JSON.parse(text) : undefined });
          } catch (error) {
            reject(error);
          }
        });
      });
      request.on('error', reject);
      request.end(payload);
    });
  return {
    send: async (request) => {
      const reply = await exchange(request).catch(() => undefined);
      watch?.(reply?.status ?? 'cut', request, reply);
      return reply === undefined || reply.status >= 500 ? undefined : reply;
    },
    close: () => agent.destroy(),
  };
}
