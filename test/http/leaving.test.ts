/** Clients that leave before an answer is complete. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextRound } from 'node:timers/promises';
import { Hono } from 'hono';
import { pino } from 'pino';
import { openPolicy } from '../../src/access/policy/policy.ts';
import { defaultConfig } from '../../src/config/config.ts';
import { streamedBody } from '../../src/http/answer.ts';
import { placementDialect } from '../../src/http/dialect.ts';
import { mountEndpoints } from '../../src/http/dispatch.ts';
import { beginExchange, type HonoEnv } from '../../src/http/exchange.ts';
import { listen } from '../../src/http/server/listen.ts';
import { openOutages } from '../../src/log/outages.ts';
import { placementService } from '../../src/placement/microversions.ts';
import { type ChunkMaker, jsonBody } from '../../src/rest/json_body.ts';
import { holdNothing } from '../support/chunks.ts';
import { until } from '../support/until.ts';

const chunk = new Uint8Array(10).fill(0x20);

/** Calls back with the address of an answer of these chunks; the lines of the log at level error. */
async function serving(chunks: () => ChunkMaker, use: (url: string, lines: readonly string[]) => Promise<void>) {
  const lines: string[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  const api = {
    root: '',
    openPaths: [],
    endpoints: [
      {
        method: 'GET',
        path: '/long',
        since: 0,
        handle: async ({ turns }: { readonly turns: () => Parameters<typeof jsonBody>[2] }) => ({
          status: 200,
          body: await jsonBody(chunks(), holdNothing, turns()),
        }),
      },
    ],
    service: placementService,
    dialect: placementDialect,
  } as const;
  const app = new Hono<HonoEnv>();
  app.use(async (c, next) => {
    c.set('exchange', { ...beginExchange(c.req.raw, c.env, [api], false), version: 1039 });
    await next();
  });
  const policy = openPolicy(defaultConfig.osloPolicy, silent);
  mountEndpoints(app, api, { policy, outages: openOutages(logger), logger, limitBytes: 1_000 });
  const server = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 100 });
  try {
    await use(`${server.url}/long`, lines);
  } finally {
    await server.close();
  }
}

suite('while the next part of a long answer is made', () => {
  test('a client that disconnects is not logged as an error, and no more of its answer is generated', async () => {
    let ended = false;
    let rounds = 0;
    function* chunks(): ChunkMaker {
      try {
        yield chunk;
        yield chunk;
        for (;;) {
          rounds += 1;
          yield undefined;
        }
      } finally {
        ended = true;
      }
    }
    await serving(chunks, async (url, lines) => {
      const leaving = new AbortController();
      const { body } = await fetch(url, { signal: leaving.signal });
      await until('the third part is made', () => rounds > 3);
      leaving.abort();
      await assert.rejects(async () => body?.getReader().read(), { name: 'AbortError' });
      await until('the making has ended', () => ended);
      for (let round = 0; round < 20; round += 1) await nextRound();
      assert.deepEqual(lines, []);
    });
  });

  test('an error is logged, as long as the client is connected', async () => {
    function* chunks(): ChunkMaker {
      yield chunk;
      yield chunk;
      yield undefined;
      throw new Error('The rest cannot be made.');
    }
    await serving(chunks, async (url, lines) => {
      await assert.rejects(async () => (await fetch(url)).text(), { name: 'TypeError' });
      assert.equal(lines.length, 1);
      assert.match(String(lines), /An answer was cut off/);
    });
  });

  for (const ends of ['done', 'value', 'error'] as const) {
    test(`a stream that was cancelled ignores how its source ends (${ends})`, async (t) => {
      const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Uint8Array<ArrayBuffer>, undefined>>();
      const failures: unknown[] = [];
      const next = () => promise;
      const made = { next, return: t.mock.fn() };
      const body = streamedBody(made, (error) => failures.push(error));
      const reader = body.getReader();
      const read = reader.read();
      await nextRound();
      await reader.cancel();
      if (ends === 'error') reject(new Error('The client has left.'));
      else resolve(ends === 'done' ? { done: true, value: undefined } : { done: false, value: chunk });
      assert.deepEqual(await read, { done: true, value: undefined });
      await nextRound();
      assert.deepEqual(failures, []);
      assert.equal(made.return.mock.callCount(), 1);
    });
  }
});
