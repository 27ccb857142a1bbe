import { once } from 'node:events';
import net from 'node:net';

/** An answer. `body` is empty if the caller does not need it. */
export type Answer = { readonly status: number; readonly bodyBytes: number; readonly body: string };

/**
 * One connection to a server of the API that stays open, for one request at a time. It takes a fraction of the CPU time of
 * `fetch` or `node:http`, which matters where client, server and database share the processors.
 */
export type Connection = {
  /**
   * @param body JSON
   * @param keepBody whether the answer's body is wanted; otherwise its bytes are counted only
   * @param version the microversion
   * @throws Error where the connection ends, or no answer comes within the time.
   */
  send(method: string, path: string, body?: string, keepBody?: boolean, version?: string): Promise<Answer>;
  close(): void;
};

type Waiting = {
  readonly request: string;
  readonly keepBody: boolean;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
};

const headEnd = '\r\n\r\n';

/**
 * Connects as the user `admin` of a server without authentication.
 *
 * @param options.waitSeconds for how long claims by query wait, if they do
 */
export async function connect(url: string, options: { readonly waitSeconds?: number } = {}): Promise<Connection> {
  const { waitSeconds } = options;
  const timeoutMs = 120_000 + 1000 * (waitSeconds ?? 0);
  const prefer = waitSeconds === undefined ? '' : `Prefer: wait=${waitSeconds}\r\n`;
  const { hostname, port, host, pathname } = new URL(url);
  const root = pathname.replace(/\/$/, '');
  const headers = `Host: ${host}\r\nAccept: application/json\r\nX-Auth-Token: admin\r\n${prefer}OpenStack-API-Version: placement `;
  const socket = net.connect({ host: hostname, port: Number(port || 80), noDelay: true });
  await once(socket, 'connect');
  let waiting: Waiting | undefined;
  let read = answerReader(false);

  const fail = (reason: string): void => {
    waiting?.reject(new Error(`${reason} in ${waiting.request}`));
    waiting = undefined;
    socket.destroy();
  };
  socket.setTimeout(timeoutMs, () => fail(`no answer within ${timeoutMs / 1000} s`));
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('the server closed the connection'));
  socket.on('data', (chunk: Buffer) => {
    try {
      const answer = read(chunk);
      if (answer === undefined) return;
      const { resolve } = waiting ?? {};
      waiting = undefined;
      resolve?.(answer);
    } catch (error) {
      fail(String(error));
    }
  });

  return {
    send: (method, path, body = '', keepBody = false, version = '1.39') =>
      new Promise((resolve, reject) => {
        waiting = { request: `${method} ${path}`, keepBody, resolve, reject };
        if (socket.destroyed) return fail('the connection has ended before the request');
        read = answerReader(keepBody);
        const content = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
        socket.write(`${method} ${root}${path} HTTP/1.1\r\n${headers}${version}\r\n${body && content}\r\n${body}`);
      }),
    close: () => socket.destroy(),
  };
}

/** Takes the chunks of one answer; returns the answer with the last chunk. */
function answerReader(keepBody: boolean): (chunk: Buffer) => Answer | undefined {
  let head: Buffer | undefined;
  let status = 0;
  let bodyBytes = 0;
  let bytesLeft = -1; // the head is not complete
  const parts: Buffer[] = [];
  return (chunk) => {
    let bytes = chunk;
    if (bytesLeft < 0) {
      head = head === undefined ? chunk : Buffer.concat([head, chunk]);
      const end = head.indexOf(headEnd);
      if (end < 0) return undefined;
      const text = head.toString('latin1', 0, end);
      bytes = head.subarray(end + headEnd.length);
      status = Number(text.slice(9, 12));
      bodyBytes = bodyLength(status, text);
      bytesLeft = bodyBytes;
    }
    bytesLeft -= bytes.length;
    if (keepBody) parts.push(bytes);
    return bytesLeft > 0 ? undefined : { status, bodyBytes, body: Buffer.concat(parts).toString() };
  };
}

function bodyLength(status: number, head: string): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return Number(length);
  if (status === 204 || status === 304) return 0;
  throw new Error('An answer came without Content-Length, which this client needs');
}
