/** A role that reads and writes rows and owns nothing. Another role makes the schema. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runToEnd } from '../manage/commands.ts';
import { type TestDatabase, withFreshDatabase } from '../support/engines.ts';
import { inOtherLanguage } from '../support/other_language.ts';
import { execute } from '../support/postgresql.ts';
import { accepted, makeProvider, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

const host = '00000000-0000-4000-8000-000000000001';

/** Calls back with the database as its owner connects to it, and as the role does. */
async function withWriter(use: (owner: string, writer: TestDatabase) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    const owner = database.config.connection ?? '';
    const url = new URL(owner);
    const role = `writer_${url.pathname.slice(-12)}`;
    url.username = role;
    const connection = url.href;
    await execute(
      owner,
      `create role ${role} login; grant usage on all sequences in schema public to ${role};
       grant select, insert, update, delete on all tables in schema public to ${role}`,
    );
    try {
      await use(owner, { ...database, settings: { connection, maxPoolSize: 10 }, config: { connection } });
    } finally {
      await execute(owner, `drop owned by ${role}; drop role ${role}`);
    }
  });
}

test('a role that may not change sequences can serve, and an error says which role can correct them', async () => {
  await withWriter(async (owner, writer) => {
    const service = await openServiceOn(writer);
    const send = requestsTo(service);
    accepted(await send('PUT', '/resource_classes/CUSTOM_FIRST'));
    await makeProvider(send, host, { CUSTOM_FIRST: { total: 8 } });
    await service.close();
    await (await openServiceOn(writer)).close(); // classes are inserted with ids, and that is no error

    await execute(owner, "select setval('resource_providers_id_seq', 1, false)");
    const remedy = 'resource_providers_id_seq. Run "placement-manage db sync" as the role that owns the tables.';
    await assert.rejects(openServiceOn(writer), (error: Error) =>
      error.message.endsWith(`denied for sequence ${remedy}`),
    );
    const translated = await inOtherLanguage(writer.config.connection ?? '');
    try {
      await assert.rejects(openServiceOn({ ...writer, config: { connection: translated.url } }), (error: Error) =>
        error.message.endsWith(`xxxxxx xxx xxxxxxxx ${remedy}`),
      );
    } finally {
      translated.stop();
    }
    const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: owner });
    assert.equal(sync.code, 0, sync.stderr);
    const synced = await openServiceOn(writer);
    await makeProvider(requestsTo(synced), '00000000-0000-4000-8000-000000000002', {});
    await synced.close();
  });
});
