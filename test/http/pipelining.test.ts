/**
 * Clients that send several requests without waiting for answers, one of which is refused. Such a client takes each
 * answer for the answer to its oldest open request.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { suite, test } from 'node:test';
import tls from 'node:tls';
import { Hono } from 'hono';
import { renderAnswer } from '../../src/http/answer.ts';
import type { HonoEnv } from '../../src/http/exchange.ts';
import { createApiServer } from '../../src/http/server/server.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { until } from '../until.ts';

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
  readonly closed: Promise<void>;
};

type Answer = readonly [status: number, body: string];

const chunkBytes = 300_000;
const chunks = 8;

async function serving(secure: boolean, use: (served: Served) => Promise<void>, clientTimeoutMs = 60_000) {
  const arrived: string[] = [];
  const { promise: released, resolve: letGo } = Promise.withResolvers<void>();
  const app = new Hono<HonoEnv>();
  app.onError((_, c) => c.text('failed', 500));
  app.use(async (c, next) => {
    arrived.push(c.req.path);
    await next();
  });
  app.get('/quick', (c) => c.text('quick'));
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
    return renderAnswer({ status: 200, body: jsonBody(made()) }, 39, '', () => {});
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
        return { client, answers, statuses: () => answers().map(([status]) => status), closed };
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

const request = (path: string, ...headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`;
const twoHosts = request('/quick', 'Host: elsewhere');
const unknownMethod = 'BREW /quick HTTP/1.1\r\nHost: localhost\r\n\r\n';
const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nHost: localhost\r\n\r\n';

const refused: readonly (readonly [what: string, text: string, status: number])[] = [
  ['has two hosts', twoHosts, 400],
  ['has no host', 'GET /quick HTTP/1.1\r\n\r\n', 400],
  ['has an unknown method', unknownMethod, 400],
  ['wants a tunnel', tunnel, 400],
  ['is none', 'HELLO\r\n\r\n', 400],
  ['has a head that is too long', request('/quick', `X-Long: ${'a'.repeat(200_000)}`), 431],
  ['has a length that is no number', request('/quick', 'Content-Length: x'), 400],
  ['has a body in broken chunks', `${chunked('/made')}xyz\r\n`, 400],
];

for (const secure of [false, true]) {
  const named = (what: string) => `${what}${secure ? ', with TLS' : ''}`;

  suite(
    named('the requests before a refused one are answered first, and the requests after it are not executed'),
    () => {
      for (const [what, bad, status] of refused) {
        test(`if it ${what}`, () =>
          serving(secure, async ({ arrived, letGo, talk }) => {
            const before = post('/made', 'one') + request('/quick') + post('/made', 'two');
            const { answers, statuses, closed } = talk(before + bad + request('/last'));
            await until('all have arrived', () => arrived.length >= 3);
            letGo();
            await closed;
            assert.deepEqual(statuses(), [201, 200, 201, status]);
            const [one, quick, two, last] = answers().map(([, body]) => body);
            assert.deepEqual([one, quick, two], ['made one', 'quick', 'made two']);
            assert.equal(JSON.parse(last ?? '').errors[0].status, status);
            assert.ok(!arrived.includes('/last'));
          }));

        test(`if it ${what}, and comes after an answer that is generated while the client reads it`, () =>
          serving(secure, async ({ arrived, letGo, talk }) => {
            const { client, answers, statuses, closed } = talk(request('/streamed') + bad);
            await until('it has arrived', () => arrived.length >= 1);
            client.pause();
            letGo();
            client.resume();
            await closed;
            assert.deepEqual(statuses(), [200, status]);
            assert.equal(answers()[0]?.[1].length, chunks * chunkBytes);
          }));
      }

      test('if the refusal comes while an answer is being sent, and more bytes follow it', () =>
        serving(secure, async ({ letGo, talk, arrived }) => {
          const { client, statuses, closed } = talk(request('/quick') + request('/slow'));
          await until('the first is answered', () => statuses().length === 1);
          client.write(unknownMethod);
          client.write('x'.repeat(1_000_000), () => letGo());
          await closed;
          assert.deepEqual(statuses(), [200, 200, 400]);
          assert.deepEqual(arrived, ['/quick', '/slow']);
        }));
    },
  );

  test(named('after an answer that is marked as the last one, no refusal is sent'), () =>
    serving(secure, async ({ arrived, letGo, talk }) => {
      for (const bad of [twoHosts, unknownMethod, tunnel]) {
        const { client, answers, closed } = talk(request('/last') + bad);
        await until('it has arrived', () => arrived.length >= 1);
        letGo();
        await closed;
        assert.deepEqual(answers(), [[200, 'last']]);
        client.destroy();
      }
    }),
  );

  test(named('a request that was answered before its body came gets no second answer if the body is broken'), () =>
    serving(secure, async ({ arrived, letGo, talk }) => {
      const early = talk(chunked('/unread'));
      await until('it is answered', () => early.statuses().length === 1);
      early.client.write('xyz\r\n');
      await early.closed;
      assert.deepEqual(early.answers(), [[401, 'no token']]);

      // The answer is ready but not sent, because the answer before it is not ready.
      const waiting = talk(request('/slow') + chunked('/unread'));
      await until('both have arrived', () => arrived.length >= 3);
      waiting.client.write('xyz\r\n');
      letGo();
      await waiting.closed;
      assert.deepEqual(waiting.answers(), [
        [200, 'slow'],
        [401, 'no token'],
      ]);
    }),
  );

  test(named('a request that does not arrive in time is refused after the complete ones, and not executed'), () =>
    serving(
      secure,
      async ({ arrived, letGo, talk }) => {
        const head = talk(`${post('/made', 'one')}GET /qui`);
        const body = talk(post('/made', 'one') + post('/made', 'two').slice(0, -1));
        // This request begins later, so it is cut off later than the two above.
        await talk('GET /qui').closed;
        await talk('GET /qui').closed;
        letGo();
        await until('the answers are there', () => head.statuses().length === 2 && body.statuses().length === 2);
        body.client.write('o');
        head.client.write('ck HTTP/1.1\r\nHost: localhost\r\n\r\n');
        await Promise.all([head.closed, body.closed]);
        for (const { statuses } of [head, body]) assert.deepEqual(statuses(), [201, 408]);
        assert.ok(!arrived.includes('/quick'));
      },
      200,
    ),
  );

  test(named('an answer that waits for an earlier answer does not count as one that the client does not read'), () =>
    serving(
      secure,
      async ({ arrived, letGo, talk }) => {
        const { client, answers } = talk(request('/slow') + request('/quick'));
        await until('both have arrived', () => arrived.length >= 2);
        for (let times = 0; times < 3; times += 1) await talk('GET /qui').closed;
        assert.ok(!client.destroyed && !client.readableEnded);
        letGo();
        await until('both are answered', () => answers().length === 2);
        assert.deepEqual(answers(), [
          [200, 'slow'],
          [200, 'quick'],
        ]);
      },
      200,
    ),
  );

  test(named('a client that disconnects while its requests wait leaves no connection behind'), () =>
    serving(secure, async ({ arrived, letGo, talk, openConnections }) => {
      for (const [place, bad] of [twoHosts, unknownMethod, tunnel].entries()) {
        const { client } = talk(post('/made', 'one') + request('/slow') + bad);
        await until('both have arrived', () => arrived.length >= 2 * (place + 1));
        client.destroy();
      }
      // The server notices that a client has gone only when it sends the answer. Before, the client looks like one that
      // has finished sending and still reads.
      letGo();
      await until('no connection is open', async () => (await openConnections()) === 0);
    }),
  );
}

suite('a client that has sent everything and closes its side gets every answer', () => {
  for (const [what, bad, status] of [['has no refused request', '', 200], ...refused] as const) {
    test(`if it ${what}`, () =>
      serving(false, async ({ arrived, letGo, talk }) => {
        const { client, statuses, closed } = talk(post('/made', 'one') + request('/slow') + bad);
        client.end();
        await until('both have arrived', () => arrived.length >= 2);
        letGo();
        await closed;
        assert.deepEqual(statuses(), [201, 200, ...(bad === '' ? [] : [status])]);
      }));
  }

  for (const half of ['GET /qui', post('/made', 'two').slice(0, -1)]) {
    test(`and 400 for a request that ends in the middle: ${JSON.stringify(half)}`, () =>
      serving(false, async ({ arrived, letGo, talk }) => {
        const { client, statuses, closed } = talk(post('/made', 'one') + half);
        client.end();
        await until('it has arrived', () => arrived.length >= 1);
        letGo();
        await closed;
        assert.deepEqual(statuses(), [201, 400]);
      }));
  }
});
