/**
 * A PostgreSQL database that the real OpenStack Placement made, filled and still serves is adopted without changes of
 * its rows.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import pg from 'pg';
import { upstreamTables } from '../../db/schema/upstream_tables.ts';
import { runToEnd } from '../manage/commands.ts';
import { buildArena, partsOf } from '../races/arena.ts';
import { succeed } from '../races/client.ts';
import { checkIntegrity } from '../races/consistency.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, type FreshDatabase } from '../support/postgresql.ts';
import { newClaim } from '../support/requests.ts';
import { compareAnswers } from './answers.ts';
import { contend } from './contest.ts';
import { type Deployment, deployByApi, deployBySql } from './deployment.ts';
import { runUpstream, startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

suite('a PostgreSQL database of OpenStack Placement', () => {
  let database: FreshDatabase;
  let sql: pg.Client;
  let upstream: Upstream;
  let deployment: Deployment;
  let ours: ServerProcess;

  before(async () => {
    database = await createDatabase(await postgresqlServer());
    await upstreamDbSync(database.url);
    upstream = await startUpstream(database.url);
    sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    deployment = await deployBySql((statement) => sql.query(statement), await deployByApi(upstream.client), 100_000);
  });

  after(async () => {
    await ours?.kill();
    await upstream?.stop();
    await sql?.end();
    await database?.drop();
  });

  test('100,000 allocations are adopted in less than 10 s, while upstream serves, and no row changes', async (t) => {
    const before = await readTables(sql);
    assert.equal(before.allocations?.count, deployment.allocationCount);
    assert.ok(deployment.allocationCount >= 100_000);
    const begunMs = Date.now();
    const sync = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: database.url });
    const tookMs = Date.now() - begunMs;
    t.diagnostic(`adopted in ${tookMs} ms`);
    assert.deepEqual({ code: sync.code, stdout: sync.stdout }, { code: 0, stdout: '' });
    assert.ok(tookMs < 10_000, `it took ${tookMs} ms`);
    assert.deepEqual(await readTables(sql), before);
  });

  test('both services have the same answers, also after our online data migrations', async (t) => {
    ours = await startServer({ connection: database.url });
    t.diagnostic(`${await compareAnswers(upstream.client, ours.client, deployment)} answers compared`);
    const { code } = await runToEnd('placement-manage', ['online-data-migrations', '--max-count', '500'], '/', {
      DATABASE_URL: database.url,
    });
    assert.equal(code, 1, 'the migrations changed rows');
    await compareAnswers(upstream.client, ours.client, deployment);
  });

  test('each service sees the writes of the other at once', async () => {
    const [provider = ''] = (await buildArena(upstream.client, randomFrom(1), 1)).providers;
    for (const [writer, reader] of [
      [upstream.client, ours.client],
      [ours.client, upstream.client],
    ] as const) {
      const url = `/resource_providers/${provider}`;
      const before = await read(writer, url);
      const traits = { resource_provider_generation: before.generation, traits: ['HW_CPU_X86_VMX', 'CUSTOM_RAID'] };
      await succeed(writer, 'PUT', `${url}/traits`, 38, traits);
      assert.deepEqual(await read(reader, url), await read(writer, url));
      assert.deepEqual(new Set((await read(reader, `${url}/traits`)).traits), new Set(traits.traits));
      await succeed(writer, 'DELETE', `${url}/traits`, 38);
      const consumer = crypto.randomUUID();
      await succeed(writer, 'PUT', `/allocations/${consumer}`, 38, newClaim({ [provider]: { VCPU: 3 } }));
      assert.deepEqual((await read(reader, `${url}/usages`)).usages, { VCPU: 3, MEMORY_MB: 0 });
      assert.deepEqual(await read(reader, `/allocations/${consumer}`), await read(writer, `/allocations/${consumer}`));
      // Each service deletes what the other one made.
      await succeed(reader, 'DELETE', `/allocations/${consumer}`, 38);
      assert.deepEqual((await read(writer, `${url}/usages`)).usages, { VCPU: 0, MEMORY_MB: 0 });
    }
  });

  test('claims from both race for the same providers, and no amount is allocated twice', async (t) => {
    const arena = await buildArena(ours.client, randomFrom(seedFor(t)), 3);
    const { won, refused, held } = await contend([upstream.client, ours.client], arena);
    t.diagnostic(
      `upstream won ${won[0]} and was refused ${refused[0]}, ours won ${won[1]} and was refused ${refused[1]}`,
    );
    for (const count of [...won, ...refused]) assert.ok(count > 0, 'both have accepted and refused claims');

    const stored = await sql.query<{ consumer_id: string; provider: string; class: string; used: number }>(
      `select a.consumer_id, p.uuid as provider, c.name as class, a.used from allocations a
       join resource_providers p on p.id = a.resource_provider_id join resource_classes c on c.id = a.resource_class_id
       where p.uuid = any($1)`,
      [arena.providers],
    );
    assert.deepEqual(
      new Map(
        stored.rows.map((row) => [
          row.consumer_id,
          { provider: row.provider, resourceClass: row.class, used: row.used },
        ]),
      ),
      held,
      'exactly the accepted claims are stored',
    );
    assert.equal(stored.rows.length, held.size);
    for (const [slot, capacity] of arena.capacities) {
      const [provider, resourceClass] = partsOf(slot);
      const used = stored.rows
        .filter((row) => row.provider === provider && row.class === resourceClass)
        .reduce((sum, row) => sum + row.used, 0);
      assert.ok(used <= capacity, `${used} of ${capacity} of ${slot}`);
      for (const client of [upstream.client, ours.client]) {
        assert.equal((await read(client, `/resource_providers/${provider}/usages`)).usages[resourceClass], used);
      }
    }
    // If upstream refuses the first claim of a consumer, it leaves the consumer record.
    await sql.query('delete from consumers where uuid not in (select consumer_id from allocations)');
    await checkIntegrity(ours.query);
  });

  test('upstream can be started again, and its commands work', async () => {
    const again = await startUpstream(database.url);
    try {
      await compareAnswers(again.client, ours.client, deployment);
    } finally {
      await again.stop();
    }
    assert.match(await runUpstream('placement-status', database.url, 'upgrade', 'check'), /Incomplete Consumers/);
    const migrated = await runUpstream('placement-manage', database.url, 'db', 'online_data_migrations');
    assert.match(migrated, /set_root_provider_ids/);
  });
});

type Answer = {
  readonly generation: number;
  readonly traits: string[];
  readonly usages: Readonly<Record<string, number>>;
};

/** An answer, reduced to the parts that both services have. */
const read = async (client: Upstream['client'], path: string): Promise<Answer> =>
  (await succeed(client, 'GET', path, 38)) as Answer;

/** The number of rows of each of upstream's tables, and a digest of their content. */
async function readTables(
  sql: pg.Client,
): Promise<Record<string, { readonly count: number; readonly digest: string }>> {
  const tables: Record<string, { count: number; digest: string }> = {};
  for (const { name, columns } of upstreamTables) {
    const { rows } = await sql.query(
      `select count(*)::integer as count, md5(string_agg(md5(row(${Object.keys(columns).join(', ')})::text), '' order by
        ${Object.keys(columns).at(2)}, ${Object.keys(columns).at(3)})) as digest from ${name}`,
    );
    tables[name] = rows[0];
  }
  return tables;
}
