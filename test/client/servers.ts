import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listen } from '../../src/http/server/listen.ts';
import { placementService } from '../../src/placement/microversions.ts';
import { type Service, type Version, versionOfText } from '../../src/placement/versions.ts';
import { openService } from '../../src/start/service.ts';
import { anyEngine, freshDatabase } from '../support/engines.ts';
import { newestVersion } from '../support/requests.ts';
import { type ConfigOverrides, testConfig } from '../support/services.ts';

/** A request as it was received, before any check. */
export type Seen = { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders };

/** A service on 127.0.0.1, and all requests that it received. */
export type TestServer = {
  readonly url: string;
  readonly seen: Seen[];
  close(): Promise<void>;
};

/** The versions that a server is limited to, such as `1.8` to `1.15`. */
export type Limits = { readonly min?: string; readonly max?: string };

/** The same service, which offers nothing below a version. */
function from(service: Service, oldest: Version): Service {
  const [first, ...further] = service.ranges;
  return { ...service, ranges: [{ ...first, oldest }, ...further], defaultVersion: oldest };
}

/** A real service on a separate database, which serves only these versions. The token `admin` may do everything. */
export async function startServer(
  { min = '1.0', max = newestVersion }: Limits = {},
  overrides: ConfigOverrides = {},
): Promise<TestServer> {
  const { config, drop } = await freshDatabase(anyEngine);
  const { api } = testConfig();
  const shared = { placementDatabase: config, api: { ...api, maxMicroversion: max } };
  const service = await openService(testConfig({ ...shared, ...overrides }), {
    speaks: from(placementService, versionOfText(min)),
  });
  const real = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
  const front = await startFront((incoming, response) => forward(real.url, incoming, response));
  return {
    ...front,
    close: async () => {
      await front.close();
      await real.close();
      await service.close();
      await drop();
    },
  };
}

/**
 * The API as it was before microversions: plain HTTP in front of a real service that is limited to 1.0. It ignores
 * version headers, and its answers have none.
 */
export async function startServerWithoutMicroversions(): Promise<TestServer> {
  const real = await startServer({ max: '1.0' });
  const front = await startFront((incoming, response) => forward(real.url, incoming, response, isVersionHeader));
  return {
    ...front,
    close: async () => {
      await front.close();
      await real.close();
    },
  };
}

const isVersionHeader = (name: string): boolean => /^openstack-api-|^x-openstack-placement-api-|^vary$/.test(name);

export type Handler = (incoming: IncomingMessage, response: ServerResponse) => void;

/** A plain HTTP server that keeps a record. */
export async function startFront(handle: Handler): Promise<TestServer> {
  const seen: Seen[] = [];
  const server = createServer((incoming, response) => {
    seen.push({ method: incoming.method ?? '', url: incoming.url ?? '', headers: incoming.headers });
    handle(incoming, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server has one
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Forwards a request, and returns its answer without the headers that `drop` names. If the client leaves, the request ends. */
export function forward(
  url: string,
  incoming: IncomingMessage,
  response: ServerResponse,
  drop: (header: string) => boolean = () => false,
): void {
  const without = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !drop(name)));
  const { method, headers, url: path = '/' } = incoming;
  const onward = request(url + path, { method, headers: without(headers), agent: false }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, without(answer.headers));
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  incoming.pipe(onward);
}
