/** Clients that send or read slowly. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { until } from '../support/until.ts';
import { goodHeaders, head, lines, withHostileServer } from './server.ts';

test('connections of clients that send too slowly, or do not read their answers, are cut', () =>
  withHostileServer(async (server) => {
    const trickle = (text: string) => Array.from({ length: 100 }, (_, index) => text.charAt(index) || 'a');
    const slowly = { pauseMs: 100, patienceMs: 20_000 };
    const [silent, headers, body, chunks] = await Promise.all([
      server.send([''], slowly),
      server.send([...trickle('GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')], slowly),
      server.send([head('Content-Length: 100'), ...trickle('{"name": "slow')], slowly),
      server.send([head('Transfer-Encoding: chunked'), ...trickle('').map(() => '1\r\na\r\n')], slowly),
    ]);
    for (const [what, { statuses, closed }] of Object.entries({ silent, headers, body, chunks })) {
      assert.ok(closed, `${what} is cut`);
      assert.deepEqual(statuses, [408], what);
    }
    // The server does not wait for the body of a request that it refuses without reading the body.
    const early = lines('POST /resource_providers HTTP/1.1', 'Host: localhost', 'Content-Length: 100');
    assert.deepEqual((await server.send(early)).statuses, [401]);
    // The client disconnects in the middle of the body.
    const half = net.connect(server.port, '127.0.0.1');
    half.write(head('Content-Length: 100', 'Expect: 100-continue'));
    await once(half, 'data'); // so the server waits for the body
    await new Promise((resolve) => half.write('{"name": "half', resolve));
    half.destroy();

    // A client that requests long answers and reads nothing of them.
    const deaf = net.connect(server.port, '127.0.0.1');
    deaf.on('error', () => {}).pause();
    const request = lines('GET /traits HTTP/1.1', ...goodHeaders.slice(0, 3));
    for (let count = 0; count < 2_000; count += 1) deaf.write(request);
    // Answers fill the buffers at both ends of the connection and then wait. Once the server has cut the connection, it answers
    // further requests with a reset.
    await until('it is cut', () => {
      if (!deaf.destroyed) deaf.write(request);
      return deaf.destroyed;
    });
    assert.equal(await server.status('/resource_providers'), 200);
  }, 2));
