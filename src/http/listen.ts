import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Hono } from 'hono';
import { type Address, bind } from './bind.ts';
import type { HonoEnv } from './exchange.ts';
import { type ApiServerOptions, createApiServer } from './server.ts';
import type { Tls } from './tls_files.ts';

/** The service on its port. */
export type Listening = {
  /** The address it listens on, `http://host:port`. */
  readonly url: string;
  /** Serves new connections by another certificate. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /** Opens the log files of other processes again, where there are some. */
  reopenLogs?(): void;
  /** Stops accepting, answers what was accepted, and ends within `drainMs`. */
  close(): Promise<void>;
};

/** Where to listen, and how to serve. */
export type ListenOptions = Address & ApiServerOptions;

/**
 * How long connections are still accepted when the end has begun, in milliseconds. Connections that the kernel took and the
 * process has not seen yet would be cut off: they get the time to be seen. Only then are clients told to go: before, they
 * would come back at once, by connections of that very kind.
 */
export const acceptMs = 100;

/**
 * Serves the app over HTTP.
 *
 * @throws Error with the remedy where the address cannot be listened on.
 */
export async function listen(app: Hono<HonoEnv>, options: ListenOptions): Promise<Listening> {
  const { server, scheme, renewTls, drain } = createApiServer(app, options);
  const address = await bind(server, options);
  return {
    url: `${scheme}://${address}`,
    renewTls,
    close: async () => {
      await sleep(acceptMs);
      // Not http.Server's own close, which would end idle connections at once, under requests that are on their way.
      net.Server.prototype.close.call(server);
      await drain();
    },
  };
}
