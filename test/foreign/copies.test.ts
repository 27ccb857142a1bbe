/**
 * Databases whose rows were copied: by logical replication, by a dump of data only, or by a program that inserts ids.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { prepareDatabase } from '../../src/start/database.ts';
import { accepted, at, makeProvider, requestsTo } from '../support/requests.ts';
import { numbered, withDeployment, writeAll } from './deployment.ts';

test('new rows get free ids after rows were copied without their sequences', async () => {
  await withDeployment(async (deployment) => {
    const { service, succeed, execute } = deployment;
    await execute(
      ...numbered.map((table) => `select setval(pg_get_serial_sequence('${table}', 'id'), 1, false)`),
      "delete from traits where name = 'HW_CPU_X86_AVX2'",
    );
    await prepareDatabase(service.database, { syncOnStartup: false });
    await succeed('GET', '/traits/HW_CPU_X86_AVX2');
    await writeAll(deployment);
  });
});

test('new rows get ids although a row has the highest possible id', async () => {
  await withDeployment(async (deployment) => {
    await deployment.execute("insert into traits (id, name) values (2147483647, 'CUSTOM_HIGHEST')");
    await prepareDatabase(deployment.service.database, { syncOnStartup: false });
    await writeAll(deployment);
  });
});

test('the change log may have two horizons, or none, and then the fleet is loaded once', async () => {
  await withDeployment(async (deployment) => {
    const { service, execute } = deployment;
    await execute("insert into provider_changes_horizon values ('3')");
    await writeAll(deployment);
    await service.fleet.fresh();
    const { loads } = service.fleet.counts;
    await execute('delete from provider_changes_horizon');
    for (let time = 0; time < 3; time++) await service.fleet.fresh();
    assert.equal(service.fleet.counts.loads, loads + 1);
    // On the embedded engine: on PostgreSQL each transaction of another database that is open now has the fleet loaded once more at its end.
  }, 'embedded');
});

test('tables that were replaced under a service, as by pg_restore --clean --single-transaction, are read at once', async () => {
  await withDeployment(async ({ service, execute }) => {
    const send = requestsTo(service, 'placement 2.7');
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    const { next } = accepted(await send('GET', '/changes')).json as { readonly next: string };
    const nameOf = async () => at(accepted(await send('GET', `/resource_providers/${host}`)).json, 'name');
    assert.equal(await nameOf(), host);
    await execute(
      `do $$ begin
        perform set_config('session_replication_role', 'replica', true);
        create table restored (like provider_changes including all);
        drop table provider_changes;
        alter table restored rename to provider_changes;
        update resource_providers set name = 'as it was' where uuid = '${host}';
      end $$`,
    );
    assert.equal(await nameOf(), 'as it was');
    assert.equal((await send('GET', `/changes?since=${next}`)).status, 410);
  });
});
