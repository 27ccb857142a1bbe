import net, { type AddressInfo } from 'node:net';

/** Where to listen. */
export type Address = {
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
};

/**
 * Makes a TCP server listen.
 *
 * @returns the address as a URL has it, `host:port`.
 * @throws Error with the remedy where the address cannot be listened on.
 */
export async function bind(server: net.Server, wanted: Address): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    // It stays for later: a connection that cannot be accepted, for want of file descriptors, must not end the process.
    server.on('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, wanted)));
    server.listen(wanted.port, wanted.host, resolve);
  });
  const { address, port } = server.address() as AddressInfo; // a TCP server has one
  return inUrl(address, port);
}

const inUrl = (host: string, port: number): string => `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;

function cannotListen(error: NodeJS.ErrnoException, { host, port }: Address): Error {
  const problem = listenProblems[error.code ?? ''] ?? `${error.message}.`;
  return new Error(`Cannot listen on ${inUrl(host, port)}: ${problem}`, { cause: error });
}

const listenProblems: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another program does. Stop it, or choose another port by --port (with make: ARGS="--port 8801") or [api] port.',
  EACCES: 'this user may not. Choose a port of 1024 or above by --port or [api] port.',
  EADDRNOTAVAIL: 'this machine has no such address. Choose one that it has by --host or [api] host.',
  ENOTFOUND: 'the host is unknown. Choose an address of this machine by --host or [api] host.',
};
