import net, { type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Hono } from 'hono';
import type { Config } from '../../config/config.ts';
import type { HonoEnv } from '../exchange.ts';
import { type ApiServerOptions, createApiServer } from './server.ts';
import type { Tls } from './tls_files.ts';

/** The service while it listens on its port. */
export type Listening = {
  /** The address it listens on, `http://host:port`. */
  readonly url: string;
  /** The address of `/metrics`, where it has one of its own. */
  readonly metricsUrl?: string | undefined;
  /** Uses another certificate for new connections. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /** Uses another service user, or another password, for Keystone, where it is used. @throws Error where settings are missing */
  renewServiceUser?(settings: Config['keystoneAuthtoken']): void;
  /** Opens the log files of other processes again, where there are any. */
  reopenLogs?(): void;
  /** Stops accepting, answers what was accepted, and ends within `drainMs`. */
  close(): Promise<void>;
};

/** Where to listen, and how to serve. */
type ListenOptions = Address & ApiServerOptions & { readonly section?: AddressSection };

/**
 * How long connections are still accepted after the end has begun, in milliseconds. Connections that the kernel has
 * accepted and the process has not would be cut off, so the process takes them first. Only then does it tell clients to
 * close their connections: clients that were told earlier would connect again at once.
 */
export const acceptMs = 100;

/**
 * Serves the app over HTTP.
 *
 * @throws ListenError where the address cannot be listened on.
 */
export async function listen(app: Hono<HonoEnv>, options: ListenOptions): Promise<Listening> {
  const { server, scheme, renewTls, drain } = createApiServer(app, options);
  const address = await bind(server, options, options.section);
  return {
    url: `${scheme}://${address}`,
    renewTls,
    close: async () => {
      await sleep(acceptMs);
      // Not http.Server's own close: it would end idle connections at once, although requests may be on their way.
      net.Server.prototype.close.call(server);
      await drain();
    },
  };
}

/** The address to listen on. */
export type Address = {
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
};

/** The service cannot listen on an address. The message has the remedy. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** The section of the configuration that an address is from. */
type AddressSection = 'api' | 'metrics';

/**
 * Makes a TCP server listen.
 *
 * @returns the address as a URL has it, `host:port`.
 * @throws ListenError where the address cannot be listened on.
 */
export async function bind(server: net.Server, wanted: Address, section: AddressSection = 'api'): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    // The listener stays: where a connection cannot be accepted later, because there are no file descriptors left, the
    // process must not end.
    server.on('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, wanted, section)));
    server.listen(wanted.port, wanted.host, resolve);
  });
  const { address, port } = server.address() as AddressInfo; // a TCP server has one
  return inUrl(address, port);
}

/**
 * Finds out before a long start whether the service can listen on all these addresses.
 *
 * @throws ListenError if it cannot
 */
export async function checkAddresses(wanted: readonly (readonly [Address, AddressSection])[]): Promise<void> {
  const servers = wanted.map(() => net.createServer());
  try {
    for (const [place, [address, section]] of wanted.entries()) {
      const server = servers[place];
      if (server !== undefined) await bind(server, address, section);
    }
  } finally {
    for (const server of servers) if (server.listening) server.close();
  }
}

const inUrl = (host: string, port: number): string => `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;

function cannotListen(error: NodeJS.ErrnoException, { host, port }: Address, section: AddressSection): ListenError {
  const problem = listenProblems[section][error.code ?? ''] ?? `${error.message}.`;
  return new ListenError(`Cannot listen on ${inUrl(host, port)}: ${problem}`, { cause: error });
}

type Problems = Readonly<Record<string, string>>;

const problemsOf = (whichPort: string, anyPort: string, whichHost: string): Problems => ({
  EADDRINUSE: `another program does. Stop it, or choose another port by ${whichPort}.`,
  EACCES: `this user may not. Choose a port of 1024 or above by ${anyPort}.`,
  EADDRNOTAVAIL: `this machine has no such address. Choose one that it has by ${whichHost}.`,
  ENOTFOUND: `no host has this name. Choose an address of this machine by ${whichHost}.`,
  EAI_AGAIN: `the name cannot be looked up now. Choose an address of this machine by ${whichHost}.`,
});

const listenProblems: Readonly<Record<AddressSection, Problems>> = {
  api: problemsOf(
    '--port (with make: ARGS="--port 8801") or [api] port',
    '--port or [api] port',
    '--host or [api] host',
  ),
  metrics: {
    ...problemsOf('[metrics] port', '[metrics] port', '[metrics] host'),
    EADDRINUSE: 'another program does, or this one by [api] host and port. Choose another port by [metrics] port.',
  },
};
