/** Answers that are generated while they are sent: if that fails, the client must see that the answer is incomplete. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Hono } from 'hono';
import { bareResponse, renderAnswer } from '../../src/http/answer.ts';
import type { HonoEnv } from '../../src/http/exchange.ts';
import { listen } from '../../src/http/server/listen.ts';
import { openTurns } from '../../src/request/turns.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import { holdNothing } from '../support/chunks.ts';

const failure = new Error('The rest cannot be made.');

/** @param fails whether an error follows the last chunk */
function* chunksOf(count: number, bytes: number, fails: boolean): Generator<Uint8Array<ArrayBuffer>> {
  for (let made = 0; made < count; made += 1) yield new Uint8Array(bytes).fill(0x20);
  if (fails) throw failure;
}

for (const [count, bytes] of [
  [2, 10],
  [3, 70_000],
  [20, 70_000],
  [3, 8_000_000],
] as const) {
  for (const fails of [true, false]) {
    test(`${count} chunks of ${bytes} bytes ${fails ? 'and an error are cut off' : 'are sent to their end'}`, async () => {
      const errors: unknown[] = [];
      const app = new Hono<HonoEnv>();
      app.get('/', async (c) => {
        const body = await jsonBody(chunksOf(count, bytes, fails), holdNothing, openTurns());
        const cutOff = (error: unknown) => {
          errors.push(error);
          c.env.outgoing?.destroy();
        };
        return bareResponse(renderAnswer({ status: 200, body }, 39, '', cutOff));
      });
      app.onError((_, c) => c.text('refused', 400));
      const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 100 });
      try {
        const read = fetch(url).then(async (response) => {
          assert.equal(response.status, 200);
          return (await response.arrayBuffer()).byteLength;
        });
        if (fails) await assert.rejects(read, { name: 'TypeError' });
        else assert.equal(await read, count * bytes);
        assert.deepEqual(errors, fails ? [failure] : []);
      } finally {
        await close();
      }
    });
  }
}

test('an answer that is made for longer than client_timeout is not cut while its client reads it', async () => {
  const app = new Hono<HonoEnv>();
  app.get('/', () => new Response(ReadableStream.from(slowly())));
  const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, clientTimeoutMs: 100 });
  try {
    assert.equal(await (await fetch(url)).text(), '12345678');
  } finally {
    await close();
  }
});

async function* slowly(): AsyncGenerator<Uint8Array> {
  for (let chunk = 1; chunk <= 8; chunk += 1) {
    await sleep(50);
    yield new TextEncoder().encode(`${chunk}`);
  }
}
