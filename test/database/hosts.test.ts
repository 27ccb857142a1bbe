/** A database URL that names several servers: a primary, its standby, and servers that do not answer. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import tls from 'node:tls';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { failureKind, isUnavailable } from '../../db/engine/failures.ts';
import { describeDatabase } from '../../src/start/database.ts';
import { openService } from '../../src/start/service.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { runToEnd } from '../manage/commands.ts';
import { makeHost, startClaimants, untilClaimed } from '../races/claimants.ts';
import { killServer, promote, requireStandby, startPrimary, startStandby } from '../races/standby.ts';
import { createDatabase, type PostgresqlServer } from '../support/postgresql.ts';
import { requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

suite('several servers in one URL', () => {
  let primary: PostgresqlServer;
  let standby: PostgresqlServer;
  /** A port on which nothing listens. Another test could get a port that is free now. */
  const nothing = 1;
  /** A port with a listener that never answers. */
  let silence: net.Server;
  let name: string;

  before(async () => {
    primary = await startPrimary();
    name = new URL((await createDatabase(primary.url)).url).pathname.slice(1);
    standby = await startStandby(primary);
    silence = net.createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => silence.listen(0, '127.0.0.1', resolve));
  });

  after(async () => {
    silence?.close();
    await standby?.stop();
    await primary?.stop();
  });

  const portOf = ({ url }: PostgresqlServer): number => Number(new URL(url).port);
  const silent = (): number => (silence.address() as net.AddressInfo).port; // it listens on a port
  const urlFor = (ports: readonly number[], parameters = '', database = name): string =>
    `postgresql://postgres:hunter2@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${database}?${parameters}`;

  /** The code of the message by which a client asks for TLS. */
  const sslRequest = 80_877_103;

  /** Lets the primary answer a connection. @param first what the client has sent so far */
  const forwardToPrimary = (socket: net.Socket, first: Buffer): void => {
    const server = net.connect(portOf(primary), '127.0.0.1').on('error', () => {});
    server.write(first);
    socket.pipe(server).pipe(socket);
  };

  /** Calls back with the database that the URL leads to. */
  async function withDatabase<T>(connection: string, use: (database: Database) => Promise<T>): Promise<T> {
    const database = await openDatabase({ connection, maxPoolSize: 3, connectTimeoutMs: 20_000 });
    try {
      return await use(database);
    } finally {
      await database.close();
    }
  }

  /** The port of the server that both pools of a database connect to. */
  const reached = (connection: string): Promise<number> =>
    withDatabase(connection, async ({ kysely, unlimited }) => {
      const [port, ...others] = await Promise.all(
        [kysely, unlimited, kysely].map(async (each) => {
          const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(each);
          return Number(rows[0]?.port);
        }),
      );
      for (const other of others) assert.equal(other, port);
      return port ?? 0;
    });

  const failureAt = (connection: string): Promise<Error> =>
    reached(connection).then(
      (port) => assert.fail(`port ${port} was reached`),
      (error: unknown) => {
        assert.ok(error instanceof Error);
        assert.doesNotMatch(error.message, /hunter2/);
        return error;
      },
    );

  const versionAt = (connection: string) =>
    runToEnd('placement-manage', ['db', 'version'], '/', {
      DATABASE_URL: connection,
      OS_PLACEMENT_DATABASE__MAX_RETRIES: '0',
    });

  test('the first server that answers is used', async () => {
    const [first, second] = [portOf(primary), portOf(standby)];
    assert.equal(await reached(urlFor([first, second])), first);
    assert.equal(await reached(urlFor([second, first])), second);
    assert.equal(await reached(urlFor([nothing, first])), first);
    assert.equal(await reached(urlFor([nothing, nothing, second])), second);
    assert.equal(await reached(urlFor([silent(), first], 'connect_timeout=1')), first);
    const listed = `postgresql://postgres@/${name}?host=127.0.0.1,127.0.0.1&port=${nothing},${first}`;
    assert.equal(await reached(listed), first);
  });

  test('connect_timeout limits how long one server may take as well', async () => {
    const began = performance.now();
    assert.match(
      (await failureAt(urlFor([silent()], 'connect_timeout=1'))).message,
      /^127\.0\.0\.1:\d+: timeout expired$/,
    );
    assert.ok(performance.now() - began < 10_000);
    assert.equal(await reached(urlFor([portOf(primary)], 'connect_timeout=1')), portOf(primary));
  });

  test('sslmode=prefer takes a server without TLS, and sslmode=require says what to do', async () => {
    const [first, second] = [portOf(primary), portOf(standby)];
    assert.equal(await reached(urlFor([first], 'sslmode=prefer&uselibpqcompat=true')), first);
    assert.equal(await reached(urlFor([nothing, second], 'sslmode=prefer&uselibpqcompat=true')), second);
    // Two attempts on the standby do not use up the one on the primary.
    const primaryOnly = 'sslmode=prefer&uselibpqcompat=true&target_session_attrs=primary';
    assert.equal(await reached(urlFor([second, first], primaryOnly)), first);
    const { code, stderr } = await versionAt(urlFor([first], 'sslmode=require'));
    assert.match(
      stderr,
      /sslmode=require cannot be reached: .*does not support SSL.* set its option ssl, or leave sslmode out/,
    );
    assert.equal(code, 69);
  });

  test('sslmode=prefer asks for TLS again after a connection without TLS failed', async () => {
    const sockets = new Set<net.Socket>();
    let firsts: string[] = [];
    let isBroken = false;
    const unsecured = net.createServer((socket) => {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .once('data', (first) => {
          const asksForTls = first.readInt32BE(4) === sslRequest;
          firsts.push(asksForTls ? 'with TLS' : 'without TLS');
          if (asksForTls) socket.end('N');
          else if (isBroken) socket.destroy();
          else forwardToPrimary(socket, first);
        });
    });
    await new Promise<void>((resolve) => unsecured.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = unsecured.address() as net.AddressInfo; // it listens on a port
      await withDatabase(urlFor([port], 'sslmode=prefer&uselibpqcompat=true'), async ({ kysely }) => {
        const ask = () => sql`select`.execute(kysely);
        const cutOff = () => {
          for (const socket of sockets) socket.destroy();
          firsts = [];
        };
        const askedFirst = async (): Promise<string | undefined> => {
          await ask().catch(() => {}); // the connection may be found to be broken only now
          return firsts[0];
        };
        await ask();
        cutOff();
        await until('the next connection begins without TLS', async () => (await askedFirst()) === 'without TLS');
        isBroken = true;
        cutOff();
        await until('such a connection fails', async () => (await askedFirst()) === 'without TLS');
        isBroken = false;
        firsts = [];
        await until('there is another connection', async () => (await askedFirst()) !== undefined);
        assert.deepEqual(firsts, ['with TLS', 'without TLS']);
      });
    } finally {
      unsecured.close();
    }
  });

  test('sslmode=prefer takes a server without TLS where the handshake fails, as libpq does', async () => {
    const secured = net.createServer((socket) => {
      socket
        .on('error', () => {})
        .once('data', (first) => {
          if (first.readInt32BE(4) === sslRequest) {
            socket.write('S');
            socket.once('data', () => socket.end('this is no TLS'));
            return;
          }
          forwardToPrimary(socket, first);
        });
    });
    await new Promise<void>((resolve) => secured.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = secured.address() as net.AddressInfo; // it listens on a port
      assert.equal(await reached(urlFor([port], 'sslmode=prefer&uselibpqcompat=true')), portOf(primary));
      const { stderr } = await versionAt(urlFor([port], 'sslmode=require'));
      assert.match(stderr, /cannot be reached: .*wrong version number.* The server answers, and TLS fails\./s);
    } finally {
      secured.close();
    }
  });

  test('an untrusted certificate of the server is named as such, with what to do', async () => {
    const secured = net.createServer((socket) => {
      socket.once('data', () => {
        socket.write('S');
        new tls.TLSSocket(socket, { isServer: true, ...selfSigned() }).on('error', () => {});
      });
    });
    await new Promise<void>((resolve) => secured.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = secured.address() as net.AddressInfo; // it listens on a port
      const { code, stderr } = await versionAt(urlFor([port], 'sslmode=verify-full'));
      assert.match(
        stderr,
        /The server answers, and TLS fails\. Where its certificate is not trusted: .*sslrootcert=FILE/,
      );
      assert.equal(code, 69);
    } finally {
      secured.close();
    }
  });

  test('without the file of sslrootcert, or with an empty one, no connection is made, and no other authority counts', async () => {
    for (const [file, reason] of [
      ['/dev/null', /cannot be reached: the file of sslrootcert is empty\./],
      ['/dev/null/none', /cannot be reached: ENOTDIR.*, open '\/dev\/null\/none'\./],
    ] as const) {
      const verified = `sslmode=verify-full&sslrootcert=${file}&uselibpqcompat=true`;
      for (const more of ['', '&connect_timeout=2']) {
        const { code, stderr } = await versionAt(urlFor([portOf(primary)], verified + more));
        assert.match(stderr, reason);
        assert.equal(code, 69);
      }
    }
  });

  test('a file that vanishes while requests wait for a connection fails these requests alone', async () => {
    const file = path.join(os.tmpdir(), `authorities-${process.pid}.pem`);
    await writeFile(file, selfSigned().cert);
    // The server has no TLS. It is not reached: each connection fails, and then the next one is made for the next request.
    const url = urlFor([portOf(primary)], `sslmode=verify-full&sslrootcert=${file}&uselibpqcompat=true`);
    const database = await openDatabase({ connection: url, maxPoolSize: 1, connectTimeoutMs: 20_000 });
    try {
      const asked = Promise.allSettled(Array.from({ length: 3 }, () => sql`select`.execute(database.kysely)));
      await rm(file);
      for (const answer of await asked) {
        assert.ok(answer.status === 'rejected');
        assert.match(String(answer.reason), /does not support SSL|ENOENT/);
      }
      await assert.rejects(sql`select`.execute(database.kysely), (error) => isUnavailable(error));
      await writeFile(file, '');
      await assert.rejects(sql`select`.execute(database.kysely), /the file of sslrootcert is empty/);
    } finally {
      await database.close();
      await rm(file, { force: true });
    }
  });

  test('target_session_attrs selects the kind of server', async () => {
    const [first, second] = [portOf(primary), portOf(standby)];
    const both = [
      [first, second],
      [second, first],
    ];
    for (const ports of both) {
      for (const [wanted, port] of [
        ['read-write', first],
        ['primary', first],
        ['read-only', second],
        ['standby', second],
        ['prefer-standby', second],
        ['any', ports[0]],
      ] as const) {
        assert.equal(await reached(urlFor(ports, `target_session_attrs=${wanted}`)), port, `${wanted} of ${ports}`);
      }
    }
    assert.equal(await reached(urlFor([nothing, first], 'target_session_attrs=prefer-standby')), first);
    assert.equal(await reached(urlFor([first], 'target_session_attrs=primary')), first);
    const random = new Set<number>();
    while (random.size < 2) random.add(await reached(urlFor([first, second], 'load_balance_hosts=random')));
  });

  test('if no server is suitable, the error gives the reason for each, and a later attempt may succeed', async () => {
    const [first, second] = [portOf(primary), portOf(standby)];
    const error = await failureAt(
      urlFor([nothing, silent(), second], 'target_session_attrs=read-write&connect_timeout=1'),
    );
    assert.equal(
      error.message,
      `127.0.0.1:${nothing}: connect ECONNREFUSED 127.0.0.1:${nothing}; 127.0.0.1:${silent()}: timeout expired; ` +
        `127.0.0.1:${second}: the server is a standby, and "read-write" is wanted`,
    );
    assert.ok(isUnavailable(error));
    const alone = await failureAt(urlFor([first], 'target_session_attrs=standby'));
    assert.equal(alone.message, `127.0.0.1:${first}: the server is a primary, and "standby" is wanted`);
  });

  test('an error of a server that refuses the database is reported, and no other server is tried', async () => {
    // One connection: the next one begins with the next server.
    const asked = withDatabase(urlFor([nothing, portOf(primary), portOf(standby)], '', 'no_such'), ({ kysely }) =>
      sql`select`.execute(kysely),
    );
    await assert.rejects(asked, (error: Error) => {
      assert.equal(error.message, `127.0.0.1:${portOf(primary)}: database "no_such" does not exist`);
      return failureKind(error) === 'access refused';
    });
  });

  test('a command names all servers, and never prints the password', async () => {
    const connection = urlFor([nothing, portOf(standby)], 'target_session_attrs=read-write');
    const { code, stderr } = await versionAt(connection);
    assert.equal(code, 69);
    assert.match(
      stderr,
      new RegExp(`:${nothing}: connect ECONNREFUSED .*; .*:${portOf(standby)}: the server is a standby`),
    );
    assert.doesNotMatch(stderr, /hunter2/);
    assert.equal(
      describeDatabase({ connection, embeddedPath: '' }),
      `PostgreSQL database ${name} at 127.0.0.1:${nothing}, 127.0.0.1:${portOf(standby)}`,
    );
  });

  // This test comes last, because it ends the primary.
  test('the service continues with the standby after its promotion, and loses nothing', async () => {
    await requireStandby(primary);
    const connection = urlFor([portOf(primary), portOf(standby)], 'target_session_attrs=read-write');
    const service = await openService(testConfig({ placementDatabase: { connection, syncOnStartup: true } }));
    try {
      const send = requestsTo(service);
      const host = await makeHost(send);
      const claimants = startClaimants(send, host, 4);
      try {
        await untilClaimed(claimants, 20, 60_000);
        await killServer(primary);
        await promote(standby);
        await untilClaimed(claimants, 20, 60_000);
      } finally {
        await claimants.stop();
      }
      const statuses = [...claimants.statuses.keys()].filter((status) => status !== 204 && status !== 503);
      assert.deepEqual(statuses, [], 'no other answers');
      const { rows } = await sql<{ id: string }>`select consumer_id as id from allocations`.execute(
        service.database.kysely,
      );
      const stored = new Set(rows.map(({ id }) => id));
      assert.deepEqual(
        claimants.acknowledged.filter((consumer) => !stored.has(consumer)),
        [],
      );
    } finally {
      await service.close();
    }
  });
});
