/** Memory of long answers, which is used again: none may be overwritten before all of it was sent. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { lendMemory, takeBackMemory } from '../../src/answer_memory.ts';
import { listen } from '../../src/http/listen.ts';
import { flatHost } from '../bench/data_set.ts';
import { loadTrees } from '../bench/load_by_sql.ts';
import { withFreshDatabase } from '../engines.ts';
import { execute } from '../postgresql.ts';
import { openServiceOn } from '../services.ts';

test('memory is lent to one at a time, and again once it came back', () => {
  const first = lendMemory(100_000);
  assert.ok(first.length >= 100_000);
  assert.notEqual(lendMemory(100_000).buffer, first.buffer);
  takeBackMemory(first.subarray(10, 20));
  takeBackMemory(first);
  assert.equal(lendMemory(100_000).buffer, first.buffer);
  assert.notEqual(lendMemory(100_000).buffer, first.buffer, 'what came back twice is there once');
  const own = Buffer.alloc(first.length);
  takeBackMemory(own);
  assert.notEqual(lendMemory(100_000).buffer, own.buffer, 'what was not lent is not taken');
});

test('long answers at the same time stay apart, however they are read', () =>
  withFreshDatabase('postgresql', async (database) => {
    const { connection = '' } = database.config;
    await loadTrees(async (statement) => (await execute(connection, statement)).rows, [flatHost], 10_000);
    const service = await openServiceOn(database);
    const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    try {
      // Longer than what the kernel takes of an answer that nobody reads.
      const queries = ['VCPU:1', 'DISK_GB:1&limit=9500', 'VCPU:2,MEMORY_MB:256,DISK_GB:10', 'MEMORY_MB:1&limit=9000'];
      const right = new Map<string, string>();
      for (const query of queries) right.set(query, (await read(url, query, 'at once')) ?? '');
      assert.equal(new Set(right.values()).size, queries.length);
      const memory = lendMemory(Buffer.byteLength(right.get('MEMORY_MB:1&limit=9000') ?? ''));
      assert.match(memory.toString('latin1', 0, 30), /^\{"allocation_requests"/, 'nothing was given back');
      takeBackMemory(memory);

      let compared = 0;
      const client = async (number: number): Promise<void> => {
        for (let round = 0; round < 6; round += 1) {
          const query = queries[(number + round) % queries.length] ?? '';
          const text = await read(url, query, manners[(number * 5 + round) % manners.length] ?? 'at once');
          if (text === undefined) continue;
          assert.ok(text === right.get(query), `an answer to ${query} is not what it was`);
          compared += 1;
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, number) => client(number)));
      assert.ok(compared > 50, `only ${compared} answers`);
    } finally {
      await close();
      await service.close();
    }
  }));

test('memory of a size that is not asked for any more makes room for what is', () => {
  const large = Array.from({ length: 9 }, () => lendMemory(8 * 1024 * 1024));
  for (const memory of large) takeBackMemory(memory);
  const small = lendMemory(100_000);
  takeBackMemory(small);
  assert.equal(lendMemory(100_000).buffer, small.buffer);
});

const manners = ['at once', 'late', 'in part'] as const;

/** @returns the text of the answer; undefined where the client goes in the middle of it */
async function read(url: string, query: string, manner: (typeof manners)[number]): Promise<string | undefined> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.39' };
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    http.get(`${url}/allocation_candidates?resources=${query}`, { headers, agent: false }, resolve).on('error', reject);
  });
  assert.equal(response.statusCode, 200);
  if (manner === 'late') await sleep(100);
  const chunks: Buffer[] = [];
  for await (const chunk of response) {
    chunks.push(chunk);
    if (manner === 'in part') return undefined;
  }
  return Buffer.concat(chunks).toString('latin1');
}
