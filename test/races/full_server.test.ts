/** Other programs have taken all connection slots of PostgreSQL. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { isTimedOut } from '../../db/engine/failures.ts';
import { graceMs } from '../../db/engine/pool.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { createDatabase, execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { accepted, at, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { claim, makeHost } from './claimants.ts';

type Look = { readonly pid: number; readonly limit: string };

type Full = {
  readonly service: PlacementService;
  readonly send: Send;
  readonly host: string;
  /** Takes all free connection slots. */
  readonly takeAll: () => Promise<void>;
  /** A connection of another program. */
  readonly other: pg.Client;
  readonly free: () => Promise<void>;
  /** How many connections the service has tried to open. */
  readonly connects: () => number;
};

suite('PostgreSQL has no free connection slot', () => {
  let server: PostgresqlServer;
  before(async () => {
    server = await startPostgresql({ settings: { max_connections: '12' } });
  });
  after(() => server?.stop());

  /** Calls back with a service that has a connection, while other programs have taken all other slots. */
  async function withFullServer(use: (full: Full) => Promise<void>): Promise<void> {
    const { url } = await createDatabase(server.url);
    const counted = await countConnections(Number(new URL(server.url).port));
    const connection = url.replace(/:\d+\//, `:${counted.port}/`);
    const placementDatabase = { ...testConfig().placementDatabase, connection, syncOnStartup: true };
    const service = await openService(testConfig({ placementDatabase }));
    const { others, takeAll, free } = otherPrograms(url);
    try {
      const send = requestsTo(service);
      const host = await makeHost(send);
      await takeAll();
      const [other] = others;
      assert.ok(other !== undefined && service.database.connections().open > 0);
      await use({ service, send, host, takeAll, other, free, connects: () => counted.count });
    } finally {
      await free();
      await service.close();
      counted.close();
    }
  }

  /** Requests of each kind, at once. */
  const many = async (send: Send, host: string): Promise<void> => {
    const each = async (): Promise<void> => {
      const consumer = randomUUID();
      accepted(await claim(send, host, consumer));
      accepted(await send('GET', `/allocations/${consumer}`));
      accepted(await send('GET', '/allocation_candidates?resources=VCPU:1'));
      accepted(await send('DELETE', `/allocations/${consumer}`));
      accepted(await send('GET', '/readyz'));
    };
    await Promise.all(Array.from({ length: 30 }, each));
  };

  test('no request fails, and further connections are opened only once in a while', async () => {
    await withFullServer(async ({ service, send, host, free, connects }) => {
      const startedMs = performance.now();
      const before = connects();
      for (let round = 0; round < 8; round += 1) await many(send, host);
      const seconds = (performance.now() - startedMs) / 1000;
      // Two pools, which may have tried in the same second, and the attempts before the first refusal.
      assert.ok(connects() - before <= 2 * (seconds + 1) + 10, `${connects() - before} attempts in ${seconds} s`);
      await free();
      await until('the pool grows again', async () => {
        await many(send, host);
        return service.database.connections().open > 5;
      });
    });
  });

  test('without connections of the slow lane a claim waits for a lock of another program, and other claims are written', async () => {
    await withFullServer(async ({ send, host, other }) => {
      const held = await makeHost(send);
      await other.query('begin');
      await other.query(`select from resource_providers where uuid = '${held}' for update`);
      const waiting = Promise.all(Array.from({ length: 5 }, () => claim(send, held, randomUUID())));
      await many(send, host);
      await sleep(500);
      await many(send, host);
      await other.query('commit');
      for (const answer of await waiting) accepted(answer);
    });
  });

  test('all providers are loaded again by a connection of the pool', async () => {
    await withFullServer(async ({ service, send, host, other }) => {
      const { loads } = service.fleet.counts;
      await other.query('truncate resource_provider_traits');
      await many(send, host);
      assert.equal(service.fleet.counts.loads, loads + 1);
    });
  });

  test('work without time limits has none on a connection of the requests either, and the limits are set again afterwards', async () => {
    const { url, drop } = await createDatabase(server.url);
    const statementTimeoutMs = 500;
    const database = await openDatabase({ connection: url, maxPoolSize: 2, statementTimeoutMs });
    const { takeAll, free } = otherPrograms(url);
    try {
      await execute(url, 'create table made (id integer)');
      // Both connections of the requests.
      const inUse = () => {
        const look = sql<Look>`select pg_backend_pid() as pid, current_setting('statement_timeout') as limit, pg_sleep(0.1)`;
        return Promise.all([1, 2].map(async () => (await look.execute(database.kysely)).rows[0]));
      };
      const before = await inUse();
      await takeAll();
      // Longer than the server's limit, and than the time after which the client would give up.
      const seconds = sql.lit((statementTimeoutMs + graceMs + 500) / 1000);
      const answers = await Promise.all([
        sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(${seconds})`.execute(database.unlimited),
        database.unlimited.transaction().execute(async (trx) => {
          const made = sql`insert into made select 1 from pg_sleep(${seconds})`;
          await made.execute(trx);
          return sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
        }),
      ]);
      const pids = (looks: readonly ({ readonly pid: number } | undefined)[]) =>
        looks.map((look) => look?.pid).toSorted();
      assert.deepEqual(pids(answers.map(({ rows }) => rows[0])), pids(before), 'they were lent');
      const after = await inUse();
      assert.deepEqual(pids(after), pids(before));
      assert.deepEqual(
        after.map((look) => look?.limit),
        ['500ms', '500ms'],
      );
      await assert.rejects(sql`select pg_sleep(60)`.execute(database.kysely), isTimedOut);
    } finally {
      await free();
      await database.close();
      await drop();
    }
  });

  test('without any connection requests are 503 with the reason, until there is one', async () => {
    await withFullServer(async ({ send, host, takeAll, other, free }) => {
      const own = `from pg_stat_activity where datname = current_database() and application_name = 'placement'`;
      // A connection that ends is not listed any more, and releases its slot a little later: the service may take that slot.
      const end = async () => {
        await other.query(`select pg_terminate_backend(pid) ${own}`);
        await takeAll();
        return [await claim(send, host, randomUUID()), await send('GET', '/readyz')] as const;
      };
      let [refused, probe] = await end();
      const isTold = () =>
        /no connection left for the service/.test(String(at(refused.json, 'errors', 0, 'detail'))) &&
        probe.text === 'The database has no connection left for the service';
      await until('the service has no connection', async () => {
        // A request whose connection was cut off is told that the database cannot be reached.
        if (isTold()) return true;
        [refused, probe] = await end();
        return false;
      });
      assert.deepEqual([refused.status, refused.headers.get('retry-after'), probe.status], [503, '1', 503]);
      await free();
      await until('it serves', async () => (await send('GET', '/readyz')).status === 200);
      await many(send, host);
    });
  });

  test('a limit of the role is a reason as well', async () => {
    const { url } = await createDatabase(server.url);
    const role = `role_${randomUUID().replaceAll('-', '')}`;
    await execute(url, `create role ${role} login connection limit 3; grant all on schema public to ${role}`);
    const placementDatabase = {
      ...testConfig().placementDatabase,
      connection: url.replace('//postgres@', `//${role}@`),
      syncOnStartup: true,
    };
    const service = await openService(testConfig({ placementDatabase }));
    try {
      const send = requestsTo(service);
      await many(send, await makeHost(send));
    } finally {
      await service.close();
    }
  });
});

/** Other programs, which take all free connection slots. */
function otherPrograms(url: string) {
  const others: pg.Client[] = [];
  const takeAll = async (): Promise<void> => {
    for (;;) {
      const client = new pg.Client({ connectionString: url });
      client.on('error', () => {});
      try {
        await client.connect();
        others.push(client);
      } catch (error) {
        assert.ok(error instanceof Error && 'code' in error && error.code === '53300', String(error));
        return;
      }
    }
  };
  const free = async (): Promise<void> => {
    await Promise.all(others.splice(0).map((client) => client.end()));
  };
  return { others, takeAll, free };
}

/** Passes connections on to a port, and counts them. */
async function countConnections(
  port: number,
): Promise<{ readonly port: number; readonly count: number; close(): void }> {
  let count = 0;
  const sockets = new Set<net.Socket>();
  const listener = net.createServer((from) => {
    count += 1;
    const to = net.connect(port, '127.0.0.1');
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        from.destroy();
        to.destroy();
      });
    }
    from.pipe(to).pipe(from);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address() as net.AddressInfo; // it listens on a port
  return {
    port: address.port,
    get count() {
      return count;
    },
    close: () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
