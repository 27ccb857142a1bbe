/** After any write by any program, each stored tag matches the content, in the same transaction. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { backfillEtags } from '../../db/online/backfill_etags.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { newStock, writeByApi, writeBySql } from '../races/fleet_writes.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { type Engine, withFreshDatabase } from '../support/engines.ts';
import { requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { assertStored, storedTags } from './stored_tags.ts';

async function withServiceAndClient(
  engine: Engine,
  use: (service: PlacementService, client: pg.Client | undefined) => Promise<void>,
) {
  await withFreshDatabase(engine, async (database) => {
    const { settings } = database;
    const client = 'connection' in settings ? new pg.Client({ connectionString: settings.connection }) : undefined;
    await client?.connect();
    const service = await openServiceOn(database);
    try {
      await use(service, client);
    } finally {
      await service.close();
      await client?.end();
    }
  });
}

/**
 * Writes at old versions: below 1.7 a class can be renamed, below 1.19 aggregates leave the generation, below 1.38 a
 * consumer keeps its type.
 */
async function writeAtOldVersions(
  service: PlacementService,
  providers: readonly string[],
  random: Random,
): Promise<void> {
  const send = async (method: string, path: string, version: string, body: unknown) => {
    const { request, status } = await requestsTo(service)(method, path, body, `placement ${version}`);
    assert.ok(status < 500, `${request} at ${version}: ${status}`);
  };
  const name = () => `CUSTOM_${random.pick(['C', 'D', 'E', 'F'])}`;
  const consumer = '30328d13-e299-4a93-a102-61e4ccabe474';
  const provider = providers.length === 0 ? consumer : random.pick(providers);
  const resources = { [random.pick(['VCPU', 'CUSTOM_C'])]: 1 + random.below(3) };
  const claim = { allocations: { [provider]: { resources } }, project_id: `p${random.below(2)}`, user_id: 'u' };
  await random.pick([
    () => send('PUT', `/resource_classes/${name()}`, '1.6', { name: name() }),
    () => send('PUT', `/resource_providers/${provider}/aggregates`, '1.18', [consumer].slice(random.below(2))),
    () => send('PUT', `/allocations/${consumer}`, '1.12', claim),
    () => send('POST', '/allocations', '1.27', { [consumer]: claim }),
  ])();
}

test('after writes by the API at any version no row lacks its tag, on the embedded database', async (t) => {
  const random = randomFrom(seedFor(t));
  await withServiceAndClient('embedded', async (service) => {
    const stock = newStock(random);
    for (let i = 0; i < 30; i++) await writeByApi(service, stock, random);
    for (let round = 1; round <= 60; round++) {
      for (let i = 0; i < 3; i++) await writeByApi(service, stock, random);
      await writeAtOldVersions(service, stock.providers, random);
      await assertStored(service, `round ${round}`, false);
    }
  });
});

test('after writes by other programs tags are right or missing, and the migration adds the missing ones', async (t) => {
  const random = randomFrom(seedFor(t));
  await withServiceAndClient('postgresql', async (service, client) => {
    if (client === undefined) throw new Error('Other programs need a server.');
    const stock = newStock(random);
    for (let i = 0; i < 30; i++) await writeByApi(service, stock, random);
    let lacking = 0;
    for (let round = 1; round <= 120; round++) {
      for (let i = 0; i < 3; i++) {
        if (random.percent(55)) await writeBySql(client, random);
        else await writeByApi(service, stock, random);
      }
      await assertStored(service, `round ${round}`, true);
      if (round % 10 > 0) continue;
      const before = await storedTags(service);
      const { done } = await backfillEtags(service.database).runBatch(10_000);
      lacking += done;
      assert.equal((await backfillEtags(service.database).runBatch(10_000)).done, 0, 'all is done');
      await assertStored(service, `migrated in round ${round}`, false);
      const after = await storedTags(service);
      for (const [of, etag] of Object.entries(before)) if (etag !== null) assert.equal(after[of], etag, of);
    }
    t.diagnostic(`${lacking} rows lacked a tag`);
  });
});
