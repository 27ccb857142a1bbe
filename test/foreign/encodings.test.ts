/** Databases that were created in an encoding other than UTF-8. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { asNova, services, withRegistry } from '../compute/nova.ts';
import { postgresqlServer, type TestDatabase } from '../support/engines.ts';
import { databaseUrl, execute, majorVersion } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

/** The encoding that initdb uses if no locale is set. */
async function withSqlAscii(use: (database: TestDatabase) => Promise<void>): Promise<void> {
  const server = await postgresqlServer();
  const name = 'placement_in_sql_ascii';
  const provider = (await majorVersion(server)) < 15 ? '' : 'locale_provider libc'; // PostgreSQL 14 has no other
  await execute(server, `create database ${name} template template0 encoding 'SQL_ASCII' ${provider} locale 'C'`);
  const connection = databaseUrl(server, name);
  const settings = { connection, maxPoolSize: 10 };
  const drop = async () => {
    await execute(server, `drop database ${name}`);
  };
  try {
    const database = await openDatabase(settings);
    await migrateToLatest(database);
    await database.close();
    await use({ settings, config: { connection }, drop });
  } finally {
    await drop();
  }
}

test('in SQL_ASCII letters are kept, and only a request with too many bytes in a text is refused', async () => {
  await withSqlAscii(async (database) => {
    const service = await openServiceOn(database);
    try {
      const send = requestsTo(service);
      const host = '00000000-0000-4000-8000-000000000001';
      await makeProvider(send, host, { VCPU: { total: 8 } }, { name: 'hôte 😀' });
      const shown = accepted(await send('GET', `/resource_providers/${host}`));
      assert.equal(at(shown.json, 'name'), 'hôte 😀');

      const long = 'é'.repeat(200);
      const provider = await send('POST', '/resource_providers', { name: long });
      assert.equal(provider.status, 400, provider.text);
      assert.match(
        provider.text,
        /The encoding of the database is not UTF-8, .* too long for type character varying\(200\)/,
      );
      const claim = newClaim({ [host]: { VCPU: 1 } });
      const uuids = Array.from({ length: 8 }, (_, index) => `00000000-0000-4000-8000-00000000001${index}`);
      const claims = await Promise.all(
        uuids.map((uuid, index) =>
          send('PUT', `/allocations/${uuid}`, index === 3 ? { ...claim, project_id: long } : claim),
        ),
      );
      assert.deepEqual(
        claims.map(({ status }) => status),
        uuids.map((_, index) => (index === 3 ? 400 : 204)),
      );
    } finally {
      await service.close();
    }
  });
});

test('in SQL_ASCII an uptime with too many bytes is refused, and other heartbeats beside it are stored', async () => {
  await withSqlAscii(async (database) => {
    const service = await openServiceOn(database, withRegistry);
    try {
      const send = asNova(service);
      const agents = Array.from({ length: 8 }, (_, index) => ({ host: `host-${index}`, binary: 'nova-compute' }));
      accepted(await send('POST', services, { services: agents }));
      const uptimeOf = (index: number) => (index === 3 ? 'é'.repeat(200) : `ça fait ${index} jours`);
      const beats = await Promise.all(
        agents.map((agent, index) => send('POST', services, { ...agent, uptime: uptimeOf(index) })),
      );
      assert.deepEqual(
        beats.map(({ status }) => status),
        agents.map((_, index) => (index === 3 ? 400 : 200)),
      );
      const stored = await service.database.kysely.selectFrom('services').select('uptime').orderBy('id').execute();
      assert.deepEqual(
        stored.map(({ uptime }) => uptime),
        agents.map((_, index) => (index === 3 ? null : uptimeOf(index))),
      );
    } finally {
      await service.close();
    }
  });
});
