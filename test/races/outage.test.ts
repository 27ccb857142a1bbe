import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { openService } from '../../src/start/service.ts';
import { createDatabase, execute, startPostgresql } from '../support/postgresql.ts';
import { requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { type Claimants, claim, holdersOn, makeHost, startClaimants, untilClaimed } from './claimants.ts';

test('PostgreSQL dies under load: answers are 503 until it is back, and no acknowledged claim is lost', async () => {
  const server = await startPostgresql({ durable: true });
  const { url } = await createDatabase(server.url);
  const placementDatabase = { ...testConfig().placementDatabase, connection: url, syncOnStartup: true };
  const service = await openService(testConfig({ placementDatabase }));
  const send = requestsTo(service);
  let claimants: Claimants | undefined;
  try {
    const host = await makeHost(send);
    claimants = startClaimants(send, host, 8);
    for (let round = 0; round < 3; round += 1) {
      await untilClaimed(claimants, 50);
      const refused = () => claimants?.statuses.get(503) ?? 0;
      const before = refused();
      // If a backend is killed, the whole server restarts and recovers from its log.
      const backend = await execute(
        url,
        "select pid from pg_stat_activity where application_name = 'placement' limit 1",
      );
      process.kill(backend.rows[0].pid, 'SIGKILL');
      await until('the service notices', () => refused() > before);
      await untilClaimed(claimants, 9); // so one of these claims began after the restart
    }
    await claimants.stop();
    assert.match((await send('GET', '/metrics')).text, /^placement_ready 1$/m);

    assert.deepEqual([...claimants.statuses.keys()].sort(), [204, 503], 'no other answers');
    const holders = new Set(await holdersOn(send, host));
    assert.deepEqual(
      claimants.acknowledged.filter((consumer) => !holders.has(consumer)),
      [],
    );

    await server.stop();
    for (const path of ['/resource_providers', '/allocation_candidates?resources=VCPU:1', '/healthcheck']) {
      assert.equal((await send('GET', path)).status, 503, path);
    }
    assert.equal((await claim(send, host, randomUUID())).status, 503);
    const { text: metrics } = await send('GET', '/metrics');
    assert.match(metrics, /^placement_ready 0$/m);
    assert.match(metrics, /^placement_claims_total\{outcome="written"\} [1-9]/m);
    assert.doesNotMatch(metrics, /^openstack_placement/m);
  } finally {
    await claimants?.stop();
    await service.close();
    await server.stop();
  }
});
