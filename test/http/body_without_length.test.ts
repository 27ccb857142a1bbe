/** Bodies that are sent in chunks, so that their length is known only when they have arrived. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { newestVersion } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const limitBytes = 1_000;

/** A body of JSON of this length, in chunks of at most 300 bytes. */
function chunksOf(bytes: number): ReadableStream<Uint8Array> {
  const text = JSON.stringify({ name: 'a' });
  const body = Buffer.from(text.padEnd(bytes).slice(0, bytes));
  let sent = 0;
  return new ReadableStream({
    pull: (controller) => {
      if (sent >= body.length) return controller.close();
      controller.enqueue(new Uint8Array(body.subarray(sent, sent + 300)));
      sent += 300;
    },
  });
}

test('a body in chunks may be as long as the limit, and no byte longer', () =>
  withTestService(anyEngine, { osloMiddleware: { maxRequestBodySize: limitBytes } }, async ({ app }) => {
    const send = async (bytes: number): Promise<{ readonly status: number; readonly text: string }> => {
      const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', accept: 'application/json' };
      const init: RequestInit = { method: 'POST', headers, body: chunksOf(bytes), duplex: 'half' };
      const response = await app.request('http://localhost/resource_providers', init);
      return { status: response.status, text: await response.text() };
    };
    for (const bytes of [limitBytes + 1, limitBytes + 400, 2 * limitBytes]) {
      const { status, text } = await send(bytes);
      assert.equal(status, 413, `${bytes} bytes`);
      assert.match(text, /may have 1000 bytes/);
    }
    assert.equal((await send(limitBytes)).status, 201);
  }));

test('a body of DELETE in chunks is refused in version 2, and one without a byte is none', () =>
  withTestService(anyEngine, {}, async ({ app }) => {
    const send = async (bytes: number, version: string): Promise<number> => {
      const headers = {
        'x-auth-token': 'admin',
        'content-type': 'application/json',
        'openstack-api-version': `placement ${version}`,
        'transfer-encoding': 'chunked',
      };
      const init: RequestInit = { method: 'DELETE', headers, body: chunksOf(bytes), duplex: 'half' };
      return (await app.request('http://localhost/traits/CUSTOM_NONE', init)).status;
    };
    assert.equal(await send(300, newestVersion), 400);
    assert.equal(await send(0, newestVersion), 404);
    assert.equal(await send(300, '1.39'), 404);
  }));
