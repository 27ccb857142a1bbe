/** A service that is closed keeps no memory, though its process continues. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { giveBackMemory } from '../../src/start/give_back_memory.ts';
import { anyEngine } from '../support/engines.ts';
import { openTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

test('the metrics of a process do not keep what a closed service had', async () => {
  const former = await openAndClose();
  // A later service is scraped as well, with the metrics of the process.
  const service = await openTestService(anyEngine, { metrics: { enabled: true } });
  try {
    const text = await (await service.app.request('/metrics')).text();
    for (const name of ['process_cpu_seconds_total', 'nodejs_heap_size_total_bytes', 'placement_build_info']) {
      assert.match(text, new RegExp(`^${name}`, 'm'));
    }
    await until('nothing refers to the database of the closed service', async () => {
      await giveBackMemory();
      return former.deref() === undefined;
    });
  } finally {
    await service.close();
  }
});

/** In a function of its own, so that no frame of the stack refers to the service any more. */
async function openAndClose(): Promise<WeakRef<object>> {
  const service = await openTestService(anyEngine, { metrics: { enabled: true } });
  await (await service.app.request('/metrics')).text();
  await service.close();
  return new WeakRef(service.database);
}
