import http from 'node:http';

/** What was answered. */
export type Reply = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: unknown };

/** A client of one server whose requests can be given up: then their connections break. */
export type WaitingClient = {
  /** @throws Error where the connection breaks */
  send(
    method: string,
    path: string,
    options?: {
      readonly body?: unknown;
      readonly wait?: number;
      readonly signal?: AbortSignal;
      readonly token?: string;
    },
  ): Promise<Reply>;
  close(): void;
};

export function clientOf(url: string): WaitingClient {
  const agent = new http.Agent({ keepAlive: true });
  const { hostname, port } = new URL(url);
  return {
    send: (method, path, { body, wait, signal, token = 'admin' } = {}) =>
      new Promise((resolve, reject) => {
        const payload = body === undefined ? undefined : JSON.stringify(body);
        const headers = {
          'x-auth-token': token,
          'x-roles': 'admin,service',
          'openstack-api-version': 'placement 2.8',
          ...(wait === undefined ? {} : { prefer: `wait=${wait}` }),
          ...(payload === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        };
        const options = { agent, hostname, port, method, path, headers, ...(signal === undefined ? {} : { signal }) };
        const request = http.request(options, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            try {
              const isJson = response.headers['content-type'] === 'application/json' && text !== '';
              const status = response.statusCode ?? 0;
              resolve({ status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined });
            } catch (error) {
              reject(error);
            }
          });
        });
        request.on('error', reject);
        request.end(payload);
      }),
    close: () => agent.destroy(),
  };
}
