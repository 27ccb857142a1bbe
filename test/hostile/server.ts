import assert from 'node:assert/strict';
import net from 'node:net';
import { startCommand, withCommands } from '../manage/commands.ts';

/** The bytes that came back on a connection until the server closed it, or until `patienceMs` had passed. */
export type Reply = {
  /** The status of each answer on the connection. */
  readonly statuses: readonly number[];
  readonly text: string;
  readonly closed: boolean;
};

export type HostileServer = {
  readonly port: number;
  /** Sends bytes unchanged, with a pause between parts, and reads until the server closes the connection. */
  send(parts: string | Buffer | readonly (string | Buffer)[], options?: SendOptions): Promise<Reply>;
  /** Sends a correct request. @returns its status */
  status(path: string): Promise<number>;
  /** The processor time that the server has used so far. */
  cpuSeconds(): Promise<number>;
};

export type SendOptions = {
  readonly pauseMs?: number;
  readonly patienceMs?: number;
};

export const lines = (...each: readonly string[]): string => `${each.join('\r\n')}\r\n\r\n`;

export const goodHeaders = [
  'Host: localhost',
  'X-Auth-Token: admin',
  'OpenStack-API-Version: placement 1.39',
  'Connection: close',
];

/** The head of a POST. The test adds the rest. */
export const head = (...more: readonly string[]) =>
  lines('POST /resource_providers HTTP/1.1', ...goodHeaders, 'Content-Type: application/json', ...more);

/** A request with a body and its length. */
export function post(body: string | Buffer, path = '/resource_providers', method = 'POST'): Buffer {
  const bytes = Buffer.from(body);
  const head = lines(
    `${method} ${path} HTTP/1.1`,
    ...goodHeaders,
    'Content-Type: application/json',
    `Content-Length: ${bytes.length}`,
  );
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** The provider that exists. */
export const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';
/** Everything that a request could have changed. */
const state = [
  '/resource_providers',
  '/traits?name=startswith:CUSTOM_',
  '/resource_classes',
  `/resource_providers/${host}/inventories`,
  `/resource_providers/${host}/allocations`,
  `/resource_providers/${host}/aggregates`,
  `/resource_providers/${host}/traits`,
  '/allocations/1b1d3c4e-1111-4222-8333-444455556666',
];

/**
 * Calls back with a server in a separate process, with one resource provider. At the end the server must not have
 * answered 500, must still serve, must have the same data as before, and must end in order.
 */
export async function withHostileServer(
  use: (server: HostileServer) => Promise<void>,
  clientTimeoutSeconds = 3,
): Promise<void> {
  const serve = async ({ folder, configFile }: { readonly folder: string; readonly configFile: string }) => {
    const process = startCommand('placement-api', ['--config-file', configFile], folder);
    const [, url = ''] = await process.said(/listens on (\S+)\n/);
    const port = Number(new URL(url).port);
    const headers = {
      'x-auth-token': 'admin',
      'openstack-api-version': 'placement 1.39',
      'content-type': 'application/json',
    };
    const body = JSON.stringify({ name: 'host', uuid: host });
    assert.equal((await fetch(`${url}/resource_providers`, { method: 'POST', headers, body })).status, 200);
    const readState = async (): Promise<readonly string[]> =>
      Promise.all(state.map(async (path) => (await fetch(url + path, { headers })).text()));
    const before = await readState();
    const seen: number[] = [];
    await use({
      port,
      send: async (parts, options) => {
        const reply = await exchange(
          port,
          typeof parts === 'string' || Buffer.isBuffer(parts) ? [parts] : parts,
          options,
        );
        seen.push(...reply.statuses);
        return reply;
      },
      status: async (path) => {
        const answer = await fetch(url + path, { headers });
        await answer.arrayBuffer();
        return answer.status;
      },
      cpuSeconds: async () => {
        const text = await (await fetch(`${url}/metrics`)).text();
        return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
      },
    });
    assert.deepEqual(await readState(), before, 'nothing has changed');
    process.child.kill('SIGTERM');
    const { code, stderr } = await process.ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /Unexpected error|"status":5\d\d/);
    for (const line of stderr.trimEnd().split('\n')) JSON.parse(line);
    assert.ok(
      seen.every((status) => status < 500),
      `${seen}`,
    );
  };
  await withCommands(
    'embedded',
    'migrated',
    serve,
    `client_timeout = ${clientTimeoutSeconds}\n[oslo_middleware]\nenable_proxy_headers_parsing = true\n`,
  );
}

async function exchange(
  port: number,
  parts: readonly (string | Buffer)[],
  { pauseMs = 20, patienceMs = 10_000 }: SendOptions = {},
): Promise<Reply> {
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (data) => {
    text += data;
  });
  // A server that refuses a request may close the connection while the test still sends.
  socket.on('error', () => {});
  const ended = new Promise<boolean>((resolve) => {
    socket.once('close', () => resolve(true));
    setTimeout(resolve, patienceMs, false).unref();
  });
  for (const [index, part] of parts.entries()) {
    if (index > 0) await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, pauseMs))]);
    if (socket.destroyed) break;
    socket.write(part);
  }
  const closed = await ended;
  socket.destroy();
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { statuses, text, closed };
}

/** What a server may do with an invalid request: refuse it, or close the connection without an answer. */
export async function isRefused(server: HostileServer, what: string, request: string | Buffer): Promise<void> {
  const { statuses, closed, text } = await server.send(request, { patienceMs: 20_000 });
  assert.ok(closed, `${what}: the connection is closed`);
  assert.ok(statuses.length <= 1, `${what}: one answer at most, not ${statuses}`);
  for (const status of statuses) assert.ok(status >= 400 && status < 500, `${what}: ${text.slice(0, 300)}`);
}
