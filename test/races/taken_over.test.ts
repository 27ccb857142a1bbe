/**
 * Another server takes over. It lacks the last transactions of the former server, and has assigned their ids to other
 * providers. A request that was judged by the data of the former server must not write these providers.
 *
 * The service recognizes another server by PostgreSQL's function for its start time. The tests replace this function
 * with their own.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { type Engine, engines, withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { accepted, requestsTo, type Send } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { afterRefresh } from './after_refresh.ts';

const [ours, parent, stranger] = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`) as [
  string,
  string,
  string,
];
const provider = `/resource_providers/${ours}`;

type Scene = {
  readonly service: PlacementService;
  readonly send: Send;
  /** The other server takes over. There the id of our provider belongs to a stranger with the same generation. */
  takeOver(): Promise<void>;
  /** The stranger's row, and the number of its inventories and aggregates. */
  readStranger(): Promise<unknown>;
};

const untouched = { name: 'stranger', parent: null, inventories: 0, aggregates: 0 };

async function withScene(engine: Engine, use: (scene: Scene) => Promise<void>): Promise<void> {
  await withFreshDatabase(engine, async (database) => {
    const hide = 'set search_path = public, pg_catalog';
    if ('connection' in database.settings) {
      const { connection } = database.settings;
      await execute(connection, `alter database ${new URL(connection).pathname.slice(1)} ${hide}`);
    }
    const service = await openServiceOn(database);
    try {
      const run = (statement: string) => sql.raw(statement).execute(service.database.kysely);
      if (engine === 'embedded') await run(hide); // it has one connection
      await run('create table server_starts (at timestamptz)');
      await run(`insert into server_starts values ('2026-01-01')`);
      await run(`create function public.pg_postmaster_start_time() returns timestamptz stable language sql
        as 'select max(at) from public.server_starts'`);
      const send = requestsTo(service);
      accepted(await send('POST', '/resource_providers', { name: 'ours', uuid: ours }));
      accepted(await send('POST', '/resource_providers', { name: 'parent', uuid: parent }));
      await use({
        service,
        send,
        takeOver: async () => {
          await run(`update resource_providers set name = 'stranger', uuid = '${stranger}' where uuid = '${ours}'`);
          await run(`insert into server_starts select max(at) + interval '1 day' from server_starts`);
        },
        readStranger: async () => {
          const { rows } = await sql`select name, parent_provider_id as parent,
              (select count(*)::integer from inventories i where i.resource_provider_id = p.id) as inventories,
              (select count(*)::integer from resource_provider_aggregates a where a.resource_provider_id = p.id) as aggregates
            from resource_providers p where uuid = ${stranger}`.execute(service.database.kysely);
          return rows[0];
        },
      });
    } finally {
      await service.close();
    }
  });
}

/** Sends a request whose body is sent only when the service reads it, and after something has happened. */
async function sendSlowly(
  { app }: PlacementService,
  [method, path, body, version]: [method: string, path: string, body: unknown, version: string],
  meanwhile: () => Promise<unknown>,
): Promise<number> {
  const slowly = new ReadableStream(
    {
      pull: async (controller) => {
        await meanwhile();
        controller.enqueue(new TextEncoder().encode(JSON.stringify(body)));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const headers = {
    'x-auth-token': 'admin',
    'openstack-api-version': `placement ${version}`,
    'content-type': 'application/json',
  };
  return (await app.request(path, { method, headers, body: slowly, duplex: 'half' } as RequestInit)).status; // Node.js wants `duplex`
}

/**
 * The requests that write a provider by its id. `refresh` is the number of the last refresh of the fleet before the write.
 */
const writes: readonly (readonly [what: string, method: string, refresh: number, body?: object])[] = [
  ['deleted', 'DELETE', 1],
  ['renamed', 'PUT', 2, { name: 'renamed' }],
  ['moved', 'PUT', 2, { name: 'ours', parent_provider_uuid: parent }],
];

for (const engine of engines) {
  for (const [what, method, refresh, body] of writes) {
    test(`a provider of another server with the same id is not ${what} on ${engine}`, async () => {
      await withScene(engine, async ({ service, send, takeOver, readStranger }) => {
        afterRefresh(service, refresh, takeOver);
        assert.equal((await send(method, provider, body)).status, 404);
        assert.deepEqual(await readStranger(), untouched);
      });
    });
  }

  for (const [what, ...request] of [
    ['inventories', 'POST', `${provider}/inventories`, { resource_class: 'VCPU', total: 8 }, '1.39'],
    ['aggregates', 'PUT', `${provider}/aggregates`, [parent], '1.18'],
  ] as const) {
    test(`the provider that took the id over gets no ${what} from a slow request either, while the fleet is loaded again, on ${engine}`, async () => {
      await withScene(engine, async ({ service, takeOver, readStranger }) => {
        const status = await sendSlowly(service, [...request], async () => {
          await takeOver();
          await service.fleet.fresh();
        });
        assert.equal(status, 404);
        assert.deepEqual(await readStranger(), untouched);
      });
    });
  }

  test(`a provider that the other server has, too, is written there on ${engine}`, async () => {
    await withScene(engine, async ({ service, send, takeOver }) => {
      const another = `/resource_providers/${parent}`;
      afterRefresh(service, 2, takeOver);
      accepted(await send('PUT', another, { name: 'renamed' }));
      const body = { resource_class: 'VCPU', total: 8 };
      assert.equal(await sendSlowly(service, ['POST', `${another}/inventories`, body, '1.39'], takeOver), 201);
      accepted(await send('DELETE', another));
      assert.equal((await send('GET', another)).status, 404);
    });
  });
}
