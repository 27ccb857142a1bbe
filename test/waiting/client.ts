import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { consumerBody } from './scene.ts';

/** What was answered. */
export type Reply = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: unknown };

/** A client of one server whose requests can be aborted: then their connections break. */
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

/** Claims one unit of PGPU, and waits for it. */
export const claimOne = (client: WaitingClient, uuid: string, line?: string, signal?: AbortSignal): Promise<Reply> =>
  client.send('PUT', `/allocations/${uuid}`, {
    body: { ...consumerBody({}), ...(line === undefined ? {} : { line }) },
    wait: 60,
    ...(signal === undefined ? {} : { signal }),
  });

/** Makes a host with one unit of PGPU, and takes it. @returns the consumer */
export async function takeOnlyOne(client: WaitingClient): Promise<string> {
  const [host, holder] = [randomUUID(), randomUUID()];
  const body = { resource_provider_generation: 0, inventories: { PGPU: { total: 1 } } };
  await client.send('POST', '/resource_providers', { body: { name: host, uuid: host } });
  assert.equal((await client.send('PUT', `/resource_providers/${host}/inventories`, { body })).status, 200);
  assert.equal((await claimOne(client, holder)).status, 200);
  return holder;
}

/** The claims that wait. */
export const rowsOf = async (client: WaitingClient): Promise<readonly unknown[]> =>
  at((await client.send('GET', '/waiting')).body, 'waiting') as readonly unknown[]; // the list of GET /waiting

/** Resolves when exactly the claims of these consumers wait, in this order. */
export const untilListed = (client: WaitingClient, consumers: readonly string[]): Promise<void> =>
  until(`${consumers} wait`, async () => {
    const rows = await rowsOf(client);
    return JSON.stringify(rows.map((row) => at(row, 'consumers', 0))) === JSON.stringify(consumers);
  });
