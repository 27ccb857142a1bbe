/** After the remedy for ids that run out, the ids of all tables pass their end: upstream and this service work on the same database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numbered } from '../foreign/deployment.ts';
import { runToEnd } from '../manage/commands.ts';
import { succeed } from '../races/client.ts';
import { checkIntegrity } from '../races/consistency.ts';
import { startServer } from '../races/server_process.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, execute } from '../support/postgresql.ts';
import { newClaim } from '../support/requests.ts';
import { compareAnswers } from './answers.ts';
import { deployByApi } from './deployment.ts';
import { startUpstream, upstreamDbSync } from './placement.ts';

test('upstream reads and writes rows with ids below zero, and both services give the same answers', async () => {
  const database = await createDatabase(await postgresqlServer());
  try {
    await upstreamDbSync(database.url);
    const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: database.url });
    assert.equal(sync.code, 0, sync.stderr);
    for (const table of numbered) {
      await execute(
        database.url,
        `alter sequence ${table}_id_seq minvalue -2147483648 maxvalue 2147483647 cycle restart with 2147483646`,
      );
    }
    const upstream = await startUpstream(database.url);
    let ours: Awaited<ReturnType<typeof startServer>> | undefined;
    try {
      const deployment = await deployByApi(upstream.client);
      ours = await startServer({ connection: database.url });
      const [provider = ''] = deployment.providers;
      const consumers = Array.from({ length: 6 }, () => crypto.randomUUID());
      for (const [index, consumer] of consumers.entries()) {
        const { client } = index % 2 === 0 ? ours : upstream;
        await succeed(client, 'PUT', `/allocations/${consumer}`, 38, newClaim({ [provider]: { DISK_GB: 1 } }));
      }
      const { rows } = await execute(
        database.url,
        `select count(*)::integer as below from (${numbered.map((table) => `select min(id) as id from ${table}`).join(' union all ')}) as ids
        where id < 0`,
      );
      assert.ok(rows[0].below >= 6, `${rows[0].below} of the tables have ids below zero`);
      await compareAnswers(upstream.client, ours.client, {
        ...deployment,
        consumers: [...deployment.consumers, ...consumers],
      });
      await checkIntegrity(ours.query);
    } finally {
      await upstream.stop();
      await ours?.kill();
    }
  } finally {
    await database.drop();
  }
});
