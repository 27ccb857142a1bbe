import { chmod, lstat, rm, stat } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import type { Hono } from 'hono';
import type { ServiceUserTrial } from '../../access/keystone/service_token.ts';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../text/print.ts';
import { socketFileOf } from '../../text/socket_address.ts';
import type { HonoEnv } from '../exchange.ts';
import { inUrl, ListenError } from './address.ts';
import { type ApiServerOptions, createApiServer } from './server.ts';
import type { Tls } from './tls_files.ts';

/** The service while it listens on its port. */
export type Listening = {
  /** The address it listens on, `http://host:port` or `unix:/run/placement.sock`. */
  readonly url: string;
  /** The separate address of `/metrics`, if there is one. */
  readonly metricsUrl?: string | undefined;
  /** Uses another certificate for new connections. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /** Requests a token of another service user, or with another password, where Keystone is used. */
  tryServiceUser?(settings: Config['keystoneAuthtoken']): Promise<ServiceUserTrial>;
  /** Uses another service user, or another password, for Keystone, where it is used. @throws Error where settings are missing */
  renewServiceUser?(settings: Config['keystoneAuthtoken']): void;
  /** Reads the policy files again, or other ones. @returns why the rules stay as they were, one sentence for each reason */
  renewPolicy?(settings: Config['osloPolicy']): readonly string[] | Promise<readonly string[]>;
  /** Makes other processes, if any, log by these settings, and reopen their log files. */
  renewLogs?(settings: Config['default']): void;
  /** Stops accepting connections, answers the accepted requests, and ends within `drainMs`. */
  close(): Promise<void>;
};

/** Where to listen, and how to serve. */
type ListenOptions = Address & ApiServerOptions & { readonly section?: AddressSection };

/**
 * How long connections are still accepted after the end has begun, in milliseconds. Connections that the kernel has
 * accepted and the process has not would be cut off, so the process takes them first. Only then do its answers tell clients to
 * close their connections: a client that closes a connection earlier would connect again immediately.
 */
export const acceptMs = 100;

/**
 * So many connections wait at most to be accepted: as many as Linux allows by default (`somaxconn`), and Go programs have. With the 511 of
 * Node.js the kernel drops most of a burst of some thousands, and the clients try again after a second or more.
 */
export const mostWaiting = 4096;

/** Accepts connections for `acceptMs`, and then those that wait already: on a busy machine the process may have had no time for them. */
export async function acceptLast(servers: readonly net.Server[]): Promise<void> {
  await sleep(acceptMs);
  let accepted = true;
  for (const server of servers) {
    server.on('connection', () => {
      accepted = true;
    });
  }
  // In each round of its event loop the process accepts at least one.
  for (let round = 0; accepted && round <= mostWaiting; round += 1) {
    accepted = false;
    await nextRound();
  }
}

/**
 * Serves the app over HTTP.
 *
 * @throws ListenError where the address cannot be listened on.
 */
export async function listen(app: Hono<HonoEnv>, options: ListenOptions): Promise<Listening> {
  const { server, scheme, renewTls, drain } = createApiServer(app, options);
  const address = await bind(server, options, options.section);
  return {
    url: urlOf(scheme, address),
    renewTls,
    close: async () => {
      await acceptLast([server]);
      // Not http.Server's own close: it would end idle connections at once, although requests may be on their way.
      net.Server.prototype.close.call(server);
      await drain();
    },
  };
}

/** The address to listen on. */
export type Address = {
  /** An address or a name of this machine, or `unix:` and the name of a socket. */
  readonly host: string;
  /** 0 is any free port. A socket has none. */
  readonly port: number;
  /** The permissions of a socket; by default it is for the user of this process alone. */
  readonly socketMode?: string;
};

/** The section of the configuration that an address is from. */
type AddressSection = 'api' | 'metrics';

/**
 * Makes a server listen.
 *
 * @returns the address as a URL has it, `host:port`, or `unix:/run/placement.sock`.
 * @throws ListenError where the address cannot be listened on.
 */
export async function bind(server: net.Server, wanted: Address, section: AddressSection = 'api'): Promise<string> {
  // The listener stays: where a connection cannot be accepted later, because there are no file descriptors left, the
  // process must not end.
  const failed = new Promise<never>((_resolve, reject) => {
    server.on('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, wanted, section)));
  });
  const file = socketFileOf(wanted.host);
  if (file !== undefined) {
    await Promise.race([failed, listenOnSocket(server, file, wanted.socketMode)]).catch((error: unknown) => {
      throw error instanceof ListenError ? error : cannotListen(error, wanted, section);
    });
    return wanted.host;
  }
  await Promise.race([
    failed,
    new Promise<void>((resolve) =>
      server.listen({ port: wanted.port, host: wanted.host, backlog: mostWaiting }, resolve),
    ),
  ]);
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('A TCP server has an address and a port.');
  return inUrl(bound.address, bound.port);
}

/** The URL of an address that `bind` returned. Programs have different ones for UNIX sockets, so theirs is as in the configuration. */
export const urlOf = (scheme: 'http' | 'https', address: string): string =>
  socketFileOf(address) === undefined ? `${scheme}://${address}` : address;

/**
 * Finds out before a long start whether the service can listen on all these addresses.
 *
 * @throws ListenError if it cannot
 */
export async function checkAddresses(wanted: readonly (readonly [Address, AddressSection])[]): Promise<void> {
  const servers = wanted.map(() => net.createServer());
  try {
    for (const [index, [address, section]] of wanted.entries()) {
      const server = servers[index];
      if (server !== undefined) await bind(server, address, section);
    }
  } finally {
    for (const server of servers) if (server.listening) server.close();
  }
}

function cannotListen(error: unknown, { host, port }: Address, section: AddressSection): ListenError {
  const isSocket = socketFileOf(host) !== undefined;
  const problems = isSocket ? socketProblems(section) : listenProblems[section];
  const problem = problems[codeOf(error)] ?? `${messageOf(error)}.`;
  return new ListenError(`Cannot listen on ${isSocket ? host : inUrl(host, port)}: ${problem}`, { cause: error });
}

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

type Problems = Readonly<Record<string, string>>;

const problemsOf = (whichPort: string, anyPort: string, whichHost: string): Problems => ({
  EADDRINUSE: `another program listens there. Stop it, or choose another port by ${whichPort}.`,
  EACCES: `this user may not listen on this port. Choose a port of 1024 or above by ${anyPort}.`,
  EADDRNOTAVAIL: `this machine has no such address. Choose one that it has by ${whichHost}.`,
  ENOTFOUND: `no host has this name. Choose an address of this machine by ${whichHost}.`,
  EAI_AGAIN: `the name cannot be looked up now. Choose an address of this machine by ${whichHost}.`,
});

const socketProblems = (section: AddressSection): Problems => {
  const option = section === 'api' ? '--host or [api] host' : '[metrics] host';
  const another = `Choose another by ${option}.`;
  return {
    EADDRINUSE: `another program listens on it. Stop it, or choose another file by ${option}.`,
    EACCES: `this user may not make a socket in this folder. ${another}`,
    EPERM: `this user may not make a socket in this folder. ${another}`,
    EROFS: `the file system of this folder is read-only. ${another}`,
    ENOENT: `there is no such folder. Create it for the user of the service. ${another}`,
    ENOTDIR: `a part of the name is no folder. ${another}`,
    ENOTSOCK: `there is a file of this name, and it is no socket. Move it away, or choose another by ${option}.`,
  };
};

const listenProblems: Readonly<Record<AddressSection, Problems>> = {
  api: problemsOf(
    '--port (with make: ARGS="--port 8801") or [api] port',
    '--port or [api] port',
    '--host or [api] host',
  ),
  metrics: {
    ...problemsOf('[metrics] port', '[metrics] port', '[metrics] host'),
    EADDRINUSE:
      'another program listens there, or this one by [api] host and port. Choose another port by [metrics] port.',
  },
};

// UNIX sockets

/**
 * Makes a server listen on a UNIX socket. The file that a killed process left behind is removed. The server removes its own when it closes.
 *
 * @param mode the permissions of the socket, as `660`
 * @throws Error whose code is EADDRINUSE where another process listens there, and ENOTSOCK where the file is something else
 */
export async function listenOnSocket(server: net.Server, file: string, mode = '600'): Promise<void> {
  await stat(path.dirname(file)); // Node.js calls it a missing permission where there is no such folder
  await removeStale(file);
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: file, backlog: mostWaiting }, resolve);
      // The socket is made synchronously, so the umask applies to nothing else.
    });
  } finally {
    process.umask(before);
  }
  await chmod(file, Number.parseInt(mode, 8));
}

async function removeStale(file: string): Promise<void> {
  const stats = await lstat(file).catch(() => undefined);
  if (stats === undefined) return;
  if (!stats.isSocket()) throw Object.assign(new Error('it is no socket'), { code: 'ENOTSOCK' });
  if (await isLive(file)) throw Object.assign(new Error('another program listens on it'), { code: 'EADDRINUSE' });
  await rm(file, { force: true });
}

/** Whether a process listens on a socket. In doubt it does, such as where this user may not connect. */
function isLive(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(file, () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(!isGone.has(error.code ?? '')));
  });
}

const isGone: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);
