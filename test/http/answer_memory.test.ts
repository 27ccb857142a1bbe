/** Memory of long answers is reused. It may not be overwritten before the whole answer was sent. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { listen } from '../../src/http/server/listen.ts';
import { lendMemory, takeBackMemory } from '../../src/rest/json_body.ts';
import { flatHost } from '../bench/data_set.ts';
import { loadTrees } from '../bench/load_by_sql.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { openServiceOn } from '../support/services.ts';

test('memory is used by one answer at a time, and again after it was returned', () => {
  const first = lendMemory(100_000);
  assert.ok(first.length >= 100_000);
  assert.notEqual(lendMemory(100_000).buffer, first.buffer);
  takeBackMemory(first.subarray(10, 20));
  takeBackMemory(first);
  assert.equal(lendMemory(100_000).buffer, first.buffer);
  assert.notEqual(lendMemory(100_000).buffer, first.buffer, 'memory that was returned twice is reused once');
  const own = Buffer.alloc(first.length);
  takeBackMemory(own);
  assert.notEqual(lendMemory(100_000).buffer, own.buffer, 'memory that was not lent is not accepted');
});

test('long answers at the same time do not mix, in whatever way their clients read', () =>
  withFreshDatabase('postgresql', async (database) => {
    const { connection = '' } = database.config;
    await loadTrees(async (statement) => (await execute(connection, statement)).rows, [flatHost], 10_000);
    const service = await openServiceOn(database);
    const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    try {
      // Longer than the part of an answer that the kernel takes while the client does not read.
      const queries = ['VCPU:1', 'DISK_GB:1&limit=9500', 'VCPU:2,MEMORY_MB:256,DISK_GB:10', 'MEMORY_MB:1&limit=9000'];
      const right = new Map<string, string>();
      for (const query of queries) right.set(query, (await read(url, query, 'at once')) ?? '');
      assert.equal(new Set(right.values()).size, queries.length);
      const memory = lendMemory(Buffer.byteLength(right.get('MEMORY_MB:1&limit=9000') ?? ''));
      assert.match(memory.toString('latin1', 0, 30), /^\{"allocation_requests"/, 'no memory was returned');
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

test('unused memory of one size is released when other sizes are needed', () => {
  const large = Array.from({ length: 9 }, () => lendMemory(8 * 1024 * 1024));
  for (const memory of large) takeBackMemory(memory);
  const small = lendMemory(100_000);
  takeBackMemory(small);
  assert.equal(lendMemory(100_000).buffer, small.buffer);
});

const manners = ['at once', 'late', 'in part'] as const;

/** @returns the text of the answer; undefined if the client disconnects in the middle of it */
async function read(url: string, query: string, manner: (typeof manners)[number]): Promise<string | undefined> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.39' };
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    http.get(`${url}/allocation_candidates?resources=${query}`, { headers, agent: false }, resolve).on('error', reject);
  });
  assert.equal(response.statusCode, 200);
  // This read comes after the answer to another query, which may not use the memory of this answer.
  if (manner === 'late') await read(url, 'VCPU:2,MEMORY_MB:256,DISK_GB:10', 'at once');
  const chunks: Buffer[] = [];
  for await (const chunk of response) {
    chunks.push(chunk);
    if (manner === 'in part') return undefined;
  }
  return Buffer.concat(chunks).toString('latin1');
}
