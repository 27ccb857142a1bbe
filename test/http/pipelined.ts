import assert from 'node:assert/strict';
import net from 'node:net';
import tls from 'node:tls';
import { Hono } from 'hono';
import { bareResponse, renderAnswer } from '../../src/http/answer.ts';
import type { HonoEnv } from '../../src/http/exchange.ts';
import { createApiServer } from '../../src/http/server/server.ts';
import { openTurns } from '../../src/request/turns.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { holdNothing } from '../support/chunks.ts';

/** A server whose slow requests wait until the test releases them, and the requests that reached it. */
type Served = {
  readonly arrived: readonly string[];
  letGo(): void;
  /** Sends text, and reads until the server closes the connection. */
  talk(text: string): Talk;
  openConnections(): Promise<number>;
};

type Talk = {
  readonly client: net.Socket;
  /** The statuses and the bodies of the answers so far. */
  readonly answers: () => readonly Answer[];
  readonly statuses: () => readonly number[];
  /** Everything that was received so far. */
  readonly text: () => string;
  readonly closed: Promise<void>;
};

type Answer = readonly [status: number, body: string];

/** `/streamed` has `chunks` chunks of `chunkBytes` bytes. */
export const chunkBytes = 300_000;
export const chunks = 8;

/**
 * Calls back with a server, over TLS or not.
 *
 * @param clientTimeoutMs the time in which a request must arrive
 */
export async function serving(secure: boolean, use: (served: Served) => Promise<void>, clientTimeoutMs = 60_000) {
  const arrived: string[] = [];
  const { promise: released, resolve: letGo } = Promise.withResolvers<void>();
  const app = new Hono<HonoEnv>();
  app.onError((_, c) => c.text('failed', 500));
  app.use(async (c, next) => {
    arrived.push(c.req.path);
    await next();
  });
  app.get('/quick', (c) => c.text('quick'));
  app.get('/bytes', () =>
    bareResponse(renderAnswer({ status: 200, body: new TextEncoder().encode('bytes') }, 39, '', () => {})),
  );
  app.get('/last', async (c) => {
    await released;
    return c.text('last', 200, { connection: 'close' });
  });
  app.get('/slow', async (c) => {
    await released;
    return c.text('slow');
  });
  app.post('/made', async (c) => {
    const body = await c.req.text();
    await released;
    return c.text(`made ${body}`, 201);
  });
  app.post('/unread', (c) => c.text('no token', 401));
  app.post('/unread/slow', async (c) => {
    await released;
    return c.text('no token', 401);
  });
  app.get('/streamed', async () => {
    await released;
    const made = function* () {
      for (let chunk = 0; chunk < chunks; chunk += 1) yield new Uint8Array(chunkBytes).fill(0x20);
    };
    const body = await jsonBody(made(), holdNothing, openTurns());
    return bareResponse(renderAnswer({ status: 200, body }, 39, '', () => {}));
  });
  const api = createApiServer(app, { clientTimeoutMs, ...(secure ? { tls: selfSigned() } : {}) });
  await new Promise<void>((resolve) => api.server.listen(0, '127.0.0.1', resolve));
  const { port } = api.server.address() as net.AddressInfo; // a TCP server has one
  const clients: net.Socket[] = [];
  try {
    await use({
      arrived,
      letGo,
      openConnections: () =>
        new Promise((resolve, reject) => {
          api.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
        }),
      talk: (said) => {
        const client = secure
          ? tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
          : net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        clients.push(client);
        let text = '';
        client.setEncoding('latin1').on('data', (data) => {
          text += data;
        });
        const closed = new Promise<void>((resolve, reject) => client.once('end', resolve).once('error', reject));
        closed.catch(() => {});
        client.write(said);
        const answers = () => answersIn(text);
        return { client, text: () => text, answers, statuses: () => answers().map(([status]) => status), closed };
      },
    });
  } finally {
    letGo();
    for (const client of clients) client.destroy();
    api.server.closeAllConnections();
    api.server.close();
  }
}

/** Reads answers with a length or in chunks. The last one may be incomplete. */
function answersIn(text: string): readonly Answer[] {
  const answers: Answer[] = [];
  for (let rest = text; rest !== ''; ) {
    const [, status, head = ''] = /^HTTP\/1\.1 (\d{3}) .*\r\n((?:.+\r\n)*)\r\n/.exec(rest) ?? [];
    assert.ok(status, `an answer begins where it should: ${rest.slice(0, 200)}`);
    rest = rest.slice(rest.indexOf('\r\n\r\n') + 4);
    const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? Number.NaN);
    let body = rest.slice(0, length);
    if (Number.isNaN(length)) {
      body = '';
      for (let size = Number.NaN; size !== 0; ) {
        size = Number.parseInt(rest, 16);
        if (Number.isNaN(size)) return answers;
        const start = rest.indexOf('\r\n') + 2;
        body += rest.slice(start, start + size);
        rest = rest.slice(start + size + 2);
      }
    } else rest = rest.slice(length);
    answers.push([Number(status), body]);
  }
  return answers;
}

/** The text of a GET. */
export const request = (path: string, ...headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
/** The text of a POST with a body. */
export const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
/** The text of a POST up to its body, which comes in chunks. */
export const chunked = (path: string, ...headers: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, 'Host: localhost', ...headers, 'Transfer-Encoding: chunked', '', ''].join('\r\n');
