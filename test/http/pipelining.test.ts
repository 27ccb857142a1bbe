/**
 * Clients that send several requests without waiting for answers, one of which is refused. Such a client takes each
 * answer for the answer to its oldest open request.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { until } from '../support/until.ts';
import { chunkBytes, chunked, chunks, post, request, serving } from './pipelined.ts';

const twoHosts = request('/quick', 'Host: elsewhere');
const unknownMethod = 'BREW /quick HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** Heads of 128 KiB are allowed, for long queries. */
const longHead = `X-Long: ${'a'.repeat(120_000)}`;
const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nHost: localhost\r\n\r\n';

const refused: readonly (readonly [what: string, text: string, status: number])[] = [
  ['has two hosts', twoHosts, 400],
  ['has no host', 'GET /quick HTTP/1.1\r\n\r\n', 400],
  ['has an unknown method', unknownMethod, 400],
  ['wants a tunnel', tunnel, 400],
  ['is none', 'HELLO\r\n\r\n', 400],
  ['has a head that is too long', request('/quick', `X-Long: ${'a'.repeat(200_000)}`), 431],
  ['has a length that is no number', request('/quick', 'Content-Length: x'), 400],
  ['expects something unknown', request('/quick', 'Expect: something'), 417],
  ['has two hosts, and expects 100 Continue', request('/quick', 'Host: elsewhere', 'Expect: 100-continue'), 400],
  ['has two hosts, and expects something unknown', request('/quick', 'Host: elsewhere', 'Expect: something'), 400],
  [
    'expects something unknown, and has a body in broken chunks',
    `${chunked('/made', 'Expect: something')}xyz\r\n`,
    417,
  ],
  ['has a body in broken chunks', `${chunked('/made')}xyz\r\n`, 400],
];

for (const secure of [false, true]) {
  const named = (what: string) => `${what}${secure ? ', with TLS' : ''}`;

  test(named('the refusal of a HEAD has no body'), () =>
    serving(secure, async ({ talk }) => {
      const { text, closed } = talk(twoHosts.replace('GET', 'HEAD'));
      await closed;
      assert.match(text(), /^HTTP\/1\.1 400 Bad Request\r\n.*\r\n\r\n$/s);
      assert.ok(!text().includes('{'));
    }),
  );

  suite(
    named('the requests before a refused one are answered first, and the requests after it are not executed'),
    () => {
      for (const [what, bad, status] of refused) {
        test(`if it ${what}`, () =>
          serving(secure, async ({ arrived, letGo, talk }) => {
            const before = post('/made', 'one') + request('/quick', longHead) + post('/made', 'two');
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

  test(named('a host that is no part of a URL is refused in the form of the API, and names what is wrong'), () =>
    serving(secure, async ({ letGo, talk }) => {
      letGo();
      for (const wrong of ['a b<', ':80', 'a/b', 'a:99999999', 'local\\host']) {
        const { answers, closed } = talk(`GET /quick HTTP/1.1\r\nHost: ${wrong}\r\n\r\n${request('/last')}`);
        await closed;
        const [[status, body] = [], last] = answers();
        assert.equal(status, 400);
        assert.match(JSON.parse(body ?? '').errors[0].detail, /Host header/);
        assert.deepEqual(last, [200, 'last']);
      }
    }),
  );

  test(named('100 Continue comes between the answer before it and its own, whatever that is made of'), () =>
    serving(secure, async ({ arrived, letGo, talk }) => {
      const expecting =
        'GET /bytes HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\none';
      const { text, closed } = talk(request('/slow') + expecting + expecting + request('/last'));
      await until('the first has arrived', () => arrived.includes('/slow'));
      letGo();
      await closed;
      const parts = [...text().matchAll(/HTTP\/1\.1 \d+|slow|bytes|last/g)].map(([part]) =>
        part.replace('HTTP/1.1 ', ''),
      );
      assert.deepEqual(parts, ['200', 'slow', '100', '200', 'bytes', '100', '200', 'bytes', '200', 'last']);
    }),
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
      for (const [index, bad] of [twoHosts, unknownMethod, tunnel].entries()) {
        const { client } = talk(post('/made', 'one') + request('/slow') + bad);
        await until('both have arrived', () => arrived.length >= 2 * (index + 1));
        client.destroy();
      }
      // The server notices that a client has disconnected only when it sends the answer. Before, the client looks like one that
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
