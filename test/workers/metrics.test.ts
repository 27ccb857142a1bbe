/** What /metrics tells of a service with workers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { withCommands } from '../manage/commands.ts';
import { openClient, succeed } from '../races/client.ts';
import { until } from '../support/until.ts';
import { end, pidOf, start, withWorkers } from './service.ts';

test('a scrape refreshes the fleet in all workers, not only in the one that answers it', async () => {
  await withWorkers(2, async (service) => {
    const servedMs = performance.now();
    // One connection, so one worker. The other worker gets no requests.
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ages = async () => {
      const [answer] = await once(http.get(`${service.url}/metrics`, { agent }), 'response');
      const scraped = await text(answer);
      const workers = [...scraped.matchAll(/^placement_requests_total\{.*worker="(\d)"/gm)].map(([, worker]) => worker);
      assert.ok(new Set(workers).size <= 1, 'one worker answers');
      return [...scraped.matchAll(/^placement_fleet_age_seconds\{.*\} (\S+)$/gm)].map(([, age]) => Number(age));
    };
    await until('the fleets are some seconds old', () => performance.now() - servedMs > 2_000);
    let scrapedMs = performance.now();
    const first = await ages();
    assert.equal(first.length, 2);
    assert.ok(
      first.every((age) => age >= 2),
      `they tell the age before the scrape: ${first}`,
    );
    await until('both are as young as the scrape before', async () => {
      const sinceMs = scrapedMs;
      scrapedMs = performance.now();
      const scraped = await ages();
      return scraped.every((age) => age * 1000 <= performance.now() - sinceMs);
    });
    agent.destroy();
    await end(service);
  });
});

test('one worker counts what shapes fit for all, once in an interval', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    const shapes = 'small: resources=VCPU:1&in_tree=8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11; other: resources=VCPU:2';
    const written = await readFile(world.configFile, 'utf8');
    const configure = (intervalSeconds: number) =>
      writeFile(world.configFile, `${written}\n[metrics]\nshapes = ${shapes}\nshapes_interval = ${intervalSeconds}\n`);
    const counts = async (url: string) => {
      const scraped = await (await fetch(`${url}/metrics`, { headers: { connection: 'close' } })).text();
      return scraped.split('\n').filter((line) => line.startsWith('placement_shape_capacity'));
    };
    const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';
    const fits = (small: number, other: number) => [
      `placement_shape_capacity{shape="small"} ${small}`,
      `placement_shape_capacity{shape="other"} ${other}`,
    ];

    await configure(3600);
    const patient = await start(world, 3);
    const client = openClient(patient.url);
    await succeed(client, 'POST', '/resource_providers', 39, { uuid: host, name: 'host' });
    await succeed(client, 'PUT', `/resource_providers/${host}/inventories`, 39, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: 8 } },
    });
    for (const total of [8, 6, 4]) {
      const { resource_provider_generation } = (await succeed(
        client,
        'GET',
        `/resource_providers/${host}/inventories`,
        39,
      )) as {
        resource_provider_generation: number;
      };
      await succeed(client, 'PUT', `/resource_providers/${host}/inventories`, 39, {
        resource_provider_generation,
        inventories: { VCPU: { total } },
      });
      // Each connection goes to the next worker.
      for (let scrape = 0; scrape < 3; scrape += 1) assert.deepEqual(await counts(patient.url), fits(8, 4));
    }
    // The number outlives the worker that counted.
    const killed = [1, 2].map((worker) => pidOf(patient, worker));
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until('others in their place', () => [1, 2].every((worker) => !killed.includes(pidOf(patient, worker))));
    assert.deepEqual(await counts(patient.url), fits(8, 4));
    client.close();
    await end(patient);

    await configure(0);
    const eager = await start(world, 3);
    for (let scrape = 0; scrape < 3; scrape += 1) assert.deepEqual(await counts(eager.url), fits(4, 2));
    await end(eager);
  });
});
