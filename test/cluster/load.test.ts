/** What the clients of a cluster find of a service that loses something. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import type { Reply } from './client.ts';
import { openLedger } from './ledger.ts';
import { startLoad } from './load.ts';

const host = 'host';

test('a claim that was acknowledged and is not found at its release is lost', async () => {
  const held = new Set<string>();
  let lost: string | undefined;
  const answer = (status: number, json?: unknown): Reply => ({
    status,
    json,
    text: JSON.stringify(json) ?? '',
    headers: new Headers(),
    ms: 0,
  });
  const load = startLoad(
    async (method, path, body) => {
      const consumer = path.split('/')[2] ?? '';
      if (path.endsWith('/term')) return answer(200, {});
      if (method === 'GET') {
        const allocations = held.has(consumer) ? { [host]: { resources: { VCPU: 1 } } } : {};
        if (consumer === lost) held.delete(consumer);
        return answer(200, { allocations, consumer_generation: 1 });
      }
      if (method === 'DELETE') return answer(held.delete(consumer) ? 204 : 404);
      held.add(consumer);
      // The first consumer that lasts is lost after the read that follows its claim.
      if (at(body, 'expires_in') === undefined) lost ??= consumer;
      return answer(204);
    },
    openLedger(),
    [host],
    [],
  );
  await until('a client releases the consumer that is lost', () => load.statuses.has(404));
  await load.pause();
  assert.deepEqual(load.complaints, [`${lost} was claimed and not released, and is not found`]);
});
