import { request as send } from 'node:http';
import { text } from 'node:stream/consumers';
import { ConnectionError } from '../client/index.ts';
import type { Fetch } from '../client/send.ts';
import { messageOf } from '../text/print.ts';

/**
 * A `fetch` that sends requests to a UNIX socket. The global one cannot: it would need the package undici, for its option socketPath.
 *
 * @param address the socket as the user has named it
 */
export const socketFetch =
  (socketPath: string, address: string): Fetch =>
  async (input, init) => {
    const request = new Request(input, init);
    const { method, headers, url } = request;
    const { pathname, search } = new URL(url);
    const body = await request.text();
    return new Promise<Response>((resolve, reject) => {
      const sent = send({
        socketPath,
        method,
        path: pathname + search,
        headers: Object.fromEntries(headers),
        // Each request has a new connection: the service may close an idle connection just when it is used again.
        agent: false,
        // Not that of the Request: the signal of a Request is no longer aborted once the Request is garbage.
        signal: init?.signal ?? undefined,
      });
      sent.on('error', (error) => reject(lost(address, error)));
      sent.on('response', (answer) => {
        const { statusCode: status = 0 } = answer;
        const received = new Headers();
        for (const [name, values = []] of Object.entries(answer.headersDistinct)) {
          for (const value of values) received.append(name, value);
        }
        text(answer).then(
          (read) => resolve(new Response(withoutBody.has(status) ? null : read, { status, headers: received })),
          (error: unknown) => reject(lost(address, error)),
        );
      });
      sent.end(body === '' ? undefined : body);
    });
  };

/** Statuses with which a Response must not have a body. */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** Failures before anything was sent. */
const unsent: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket. Check its name, and that the service runs.',
  ECONNREFUSED: 'nothing listens there. Check its name, and that the service runs.',
  ENOTSOCK: 'this file is no socket. Check its name.',
  EACCES: 'this user may not open it. See [api] socket_mode in docs/configuration.md.',
};

function lost(address: string, error: unknown): ConnectionError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = unsent[code] ?? `the connection was lost (${messageOf(error)}).`;
  return new ConnectionError(`No answer from ${address}: ${reason}`, { unsent: code in unsent, cause: error });
}
