/** Clients that take their time. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { goodHeaders, head, lines, withHostileServer } from './server.ts';

test('requests that come slowly, or whose answers are not taken, are cut', () =>
  withHostileServer(async (server) => {
    const trickle = (text: string) => Array.from({ length: 100 }, (_, place) => text.charAt(place) || 'a');
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
    // Nobody waits for the body of a request that is refused without it.
    const early = lines('POST /resource_providers HTTP/1.1', 'Host: localhost', 'Content-Length: 100');
    assert.deepEqual((await server.send(early)).statuses, [401]);
    // The body ends in the middle, and the client goes.
    const half = net.connect(server.port, '127.0.0.1');
    half.write(`${head('Content-Length: 100')}{"name": "half`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    half.destroy();

    // A client that asks for much and reads nothing of it.
    const deaf = net.connect(server.port, '127.0.0.1');
    deaf.on('error', () => {}).pause();
    const request = lines('GET /traits HTTP/1.1', ...goodHeaders.slice(0, 3));
    const isCut = new Promise<void>((resolve) => deaf.once('close', () => resolve()));
    for (let count = 0; count < 2_000; count += 1) deaf.write(request);
    // What fills both ends of the connection waits; the answers behind it are cut, which a client that reads later sees.
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    deaf.resume();
    const late = setTimeout(() => deaf.destroy(new Error('It was not cut.')), 10_000);
    let failure: Error | undefined;
    deaf.on('error', (error) => {
      failure = error;
    });
    await isCut;
    clearTimeout(late);
    assert.ok(!failure?.message.includes('not cut'), String(failure));
    assert.equal(await server.status('/resource_providers'), 200);
  }, 2));
