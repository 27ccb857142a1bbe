/** Databases that somebody made in another encoding than UTF-8. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/connect.ts';
import { migrateToLatest } from '../../db/migrate.ts';
import { postgresqlServer, type TestDatabase } from '../engines.ts';
import { databaseUrl, execute } from '../postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../requests.ts';
import { openServiceOn } from '../services.ts';

/** What initdb gives where no locale is set. */
async function withSqlAscii(use: (database: TestDatabase) => Promise<void>): Promise<void> {
  const server = await postgresqlServer();
  const name = 'placement_in_sql_ascii';
  await execute(
    server,
    `create database ${name} template template0 encoding 'SQL_ASCII' locale_provider libc locale 'C'`,
  );
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

test('in SQL_ASCII, letters are kept; a text that is too long in bytes is refused, alone', async () => {
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
      const uuids = Array.from({ length: 8 }, (_, place) => `00000000-0000-4000-8000-00000000001${place}`);
      const claims = await Promise.all(
        uuids.map((uuid, place) =>
          send('PUT', `/allocations/${uuid}`, place === 3 ? { ...claim, project_id: long } : claim),
        ),
      );
      assert.deepEqual(
        claims.map(({ status }) => status),
        uuids.map((_, place) => (place === 3 ? 400 : 204)),
      );
    } finally {
      await service.close();
    }
  });
});
