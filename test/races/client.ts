import http from 'node:http';

export type Reply = {
  readonly status: number;
  /** The body as JSON. Undefined if there is none. */
  readonly body: unknown;
};

/** One HTTP client with connections that stay open. */
export type Client = {
  /**
   * @param version the microversion, such as `2.4`, or the N of `1.N`
   * @throws Error if the connection breaks before the answer: the result of the request is then unknown
   */
  send(method: string, path: string, version: number | string, body?: unknown): Promise<Reply>;
  close(): void;
};

/** @param maxSockets how many connections it has at most; further requests wait for one of them */
export function openClient(url: string, maxSockets = 64): Client {
  const agent = new http.Agent({ keepAlive: true, maxSockets });
  const { hostname, port } = new URL(url);
  return {
    send: (method, path, version, body) =>
      new Promise((resolve, reject) => {
        const payload = body === undefined ? undefined : JSON.stringify(body);
        const headers = {
          'x-auth-token': 'admin',
          'openstack-api-version': `placement ${typeof version === 'string' ? version : `1.${version}`}`,
          ...(payload === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        };
        const request = http.request({ agent, hostname, port, method, path, headers }, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) });
          });
        });
        request.on('error', reject);
        request.end(payload);
      }),
    close: () => agent.destroy(),
  };
}

/** The text of an error answer, for messages of tests. */
export const detailOf = (reply: Reply): string => JSON.stringify(reply.body ?? '');

/** @throws Error if the answer is not a success */
export async function succeed(client: Client, ...request: Parameters<Client['send']>): Promise<unknown> {
  const reply = await client.send(...request);
  if (reply.status < 200 || reply.status > 299) {
    throw new Error(`${request.slice(0, 2).join(' ')} answered ${reply.status}: ${detailOf(reply)}`);
  }
  return reply.body;
}
