/**
 * Databases whose rows were copied: by logical replication, by a dump of data only, or by a program that inserts ids.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prepareDatabase } from '../../src/start/database.ts';
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
