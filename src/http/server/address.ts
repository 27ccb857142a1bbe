import net from 'node:net';

/** The service cannot listen on an address. The message has the remedy. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** An address as a URL has it. */
export const inUrl = (host: string, port: number): string => `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
