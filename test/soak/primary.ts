import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { killServer, promote, requireStandby, startStandby } from '../races/standby.ts';
import { createDatabase, databaseUrl, execute } from '../support/postgresql.ts';
import { type RestartablePostgresql, restartable, settings, startRestartable } from './restartable_postgresql.ts';

/** The PostgreSQL server that writes, which may be another one after a failover. */
export type Primary = Pick<RestartablePostgresql, 'shutDownAtOnce' | 'start' | 'pid' | 'stop'> & {
  readonly port: number;
  /** The database of the service, with the name and the password of its user. */
  readonly serviceUrl: string;
  /** Connects to the database of the service as superuser. */
  connect(): Promise<pg.Client>;
  /** Makes a standby with all that is committed, kills this server (SIGKILL), and promotes the standby. */
  failOver(): Promise<void>;
};

const user = 'placement';
/** Only the superuser of the tests needs no password. */
const authentication = `host all postgres 127.0.0.1/32 trust
host replication postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`;

/** Starts a server with an empty database. @param password of the user of the service */
export async function openPrimary(password: string): Promise<Primary> {
  let server = await startRestartable();
  await writeFile(path.join(server.data, 'pg_hba.conf'), authentication);
  await execute(server.url, 'select pg_reload_conf()');
  // Not from the template of the tests: after a crash PostgreSQL assigns the first ids of a copied sequence again.
  const name = new URL((await createDatabase(server.url)).url).pathname.slice(1);
  await execute(server.url, `create role ${user} login password ${pg.escapeLiteral(password)}`);
  await execute(server.url, `alter database ${name} owner to ${user}`);
  const serviceUrl = new URL(databaseUrl(server.url, name));
  serviceUrl.username = user;
  serviceUrl.password = password;
  return {
    get port() {
      return Number(new URL(server.url).port);
    },
    serviceUrl: serviceUrl.href,
    connect: async () => {
      const client = new pg.Client({ connectionString: databaseUrl(server.url, name) });
      client.on('error', () => {}); // the server may be ended meanwhile
      await client.connect();
      return client;
    },
    shutDownAtOnce: () => server.shutDownAtOnce(),
    start: (environment) => server.start(environment),
    pid: () => server.pid(),
    stop: () => server.stop(),
    failOver: async () => {
      const old = server;
      const standby = await startStandby(old, settings);
      await requireStandby(old);
      await killServer(old);
      await promote(standby);
      server = await restartable(standby);
      await old.stop();
    },
  };
}
