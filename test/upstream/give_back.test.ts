/**
 * A database that this service adopted and served is returned to the real OpenStack Placement. Upstream's commands and
 * API work on it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { revisions } from '../../db/schema/revision.ts';
import { runToEnd } from '../manage/commands.ts';
import { type Client, succeed } from '../races/client.ts';
import { checkIntegrity } from '../races/consistency.ts';
import { startServer } from '../races/server_process.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, execute } from '../support/postgresql.ts';
import { newClaim } from '../support/requests.ts';
import { compareAnswers } from './answers.ts';
import { deployByApi } from './deployment.ts';
import { runUpstream, startUpstream, upstreamDbSync, upstreamDbSyncTo } from './placement.ts';

/** The newest revision that Debian's release of upstream knows. It does not know a082b8bb98d0. */
const newest = '422ece571366';

/** The columns, constraints and indexes of upstream's tables, without the parts that only this service has. */
async function upstreamSchemaOf(url: string): Promise<readonly unknown[]> {
  const { rows } = await execute(
    url,
    `select format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) as part
    from information_schema.columns where table_schema = 'public' and table_name = any(${tables}) and column_name <> 'etag'
    union all select format('%s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
    where conrelid::regclass::text = any(${tables}) and contype <> 'n'
    union all select indexdef from pg_indexes where tablename = any(${tables})
    union all select version_num from alembic_version order by part`,
  );
  return rows.map(({ part }) => part);
}

const tables = `array['alembic_version', 'allocations', 'consumer_types', 'consumers', 'inventories', 'placement_aggregates',
  'projects', 'resource_classes', 'resource_provider_aggregates', 'resource_provider_traits', 'resource_providers', 'traits',
  'users']`;

/** Makes writes of every kind, to a new provider. @returns its UUID, and that of a consumer with allocations on it */
async function writeAll(client: Client): Promise<{ readonly provider: string; readonly consumer: string }> {
  const send = (method: string, path: string, body?: unknown) => succeed(client, method, path, 38, body);
  const [provider, child, consumer, gone] = Array.from({ length: 4 }, () => crypto.randomUUID());
  const suffix = crypto.randomUUID().slice(0, 8).toUpperCase();
  await send('PUT', `/traits/CUSTOM_T${suffix}`);
  await send('PUT', `/resource_classes/CUSTOM_C${suffix}`);
  await send('POST', '/resource_providers', { uuid: provider, name: `written-${suffix}` });
  await send('POST', '/resource_providers', { uuid: child, name: `child-${suffix}`, parent_provider_uuid: provider });
  await send('PUT', `/resource_providers/${provider}`, { name: `renamed-${suffix}` });
  const inventories = { VCPU: { total: 8 }, [`CUSTOM_C${suffix}`]: { total: 2 } };
  await send('PUT', `/resource_providers/${provider}/inventories`, { resource_provider_generation: 0, inventories });
  const traits = [`CUSTOM_T${suffix}`, 'HW_CPU_X86_VMX'];
  await send('PUT', `/resource_providers/${provider}/traits`, { resource_provider_generation: 1, traits });
  const aggregates = [crypto.randomUUID()];
  await send('PUT', `/resource_providers/${provider}/aggregates`, { resource_provider_generation: 2, aggregates });
  for (const each of [consumer, gone]) {
    await send('PUT', `/allocations/${each}`, newClaim({ [provider ?? '']: { VCPU: 2, [`CUSTOM_C${suffix}`]: 1 } }));
  }
  await send('DELETE', `/allocations/${gone}`);
  await send('DELETE', `/resource_providers/${child}`);
  return { provider: provider ?? '', consumer: consumer ?? '' };
}

for (const revision of revisions.slice(0, revisions.indexOf(newest) + 1)) {
  test(`adopted at revision ${revision} and returned, upstream's db sync and API work as before`, async () => {
    const server = await postgresqlServer();
    const [database, pristine] = [await createDatabase(server), await createDatabase(server)];
    try {
      await upstreamDbSyncTo(database.url, revision);
      await upstreamDbSync(pristine.url);
      // Such an old release is not available any more, so SQL writes its rows.
      await execute(
        database.url,
        `insert into resource_providers (id, uuid, name, generation, root_provider_id, created_at)
        values (1000, '99999999-0000-4000-8000-000000000001', 'old', 3, 1000, '2019-01-01')`,
      );
      const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: database.url });
      assert.equal(sync.code, 0, sync.stderr);
      const ours = await startServer({ connection: database.url });
      const byOurs = await writeAll(ours.client).finally(() => ours.kill());

      const version = await runToEnd('placement-manage', ['db', 'version'], '/', { DATABASE_URL: database.url });
      assert.equal(version.stdout, `${newest}\n`);
      assert.equal(await runUpstream('placement-manage', database.url, 'db', 'version'), `${newest}\n`);
      await upstreamDbSync(database.url);
      assert.deepEqual(await upstreamSchemaOf(database.url), await upstreamSchemaOf(pristine.url));

      const upstream = await startUpstream(database.url);
      let again: Awaited<ReturnType<typeof startServer>> | undefined;
      try {
        const deployment = await deployByApi(upstream.client);
        const byUpstream = await writeAll(upstream.client);
        // docs/operations.md says this about a table that is not pruned in the meantime.
        await execute(database.url, 'truncate provider_changes');
        again = await startServer({ connection: database.url });
        const compared = {
          ...deployment,
          providers: [...deployment.providers, byOurs.provider, byUpstream.provider],
          consumers: [...deployment.consumers, byOurs.consumer, byUpstream.consumer],
        };
        await compareAnswers(upstream.client, again.client, compared);
        await checkIntegrity(again.query);
      } finally {
        await upstream.stop();
        await again?.kill();
      }
    } finally {
      await database.drop();
      await pristine.drop();
    }
  });
}
