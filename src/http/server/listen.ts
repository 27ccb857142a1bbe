import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Hono } from 'hono';
import type { Config } from '../../config/config.ts';
import type { HonoEnv } from '../exchange.ts';
import { type Address, type AddressSection, bind } from './bind.ts';
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
export type ListenOptions = Address & ApiServerOptions & { readonly section?: AddressSection };

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
