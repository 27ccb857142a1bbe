import assert from 'node:assert/strict';
import pg from 'pg';
import { execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

/** A PostgreSQL server that may crash and recover. */
export type CrashableServer = PostgresqlServer & {
  /**
   * From now on the write-ahead log reaches the disk with synchronous commits only. So the crash loses the transactions that come after
   * the last one: those that are rolled back, and those that are committed asynchronously.
   *
   * @returns a function that kills a process of the server, as the kernel does for lack of memory, and waits until the server has
   *   recovered. The server itself continues: the time of its start is the same.
   */
  loseInCrash(): Promise<() => Promise<void>>;
};

/** Starts the server. */
export async function startCrashableServer(): Promise<CrashableServer> {
  const server = await startPostgresql({
    durable: true,
    settings: { autovacuum: 'off', checkpoint_timeout: '1h', bgwriter_lru_maxpages: '0' },
  });
  const { url } = server;
  const startTime = async (): Promise<string> =>
    (await execute(url, 'select pg_postmaster_start_time()::text as started')).rows[0].started;
  /** The process that writes the log for others, while it is stopped. */
  let stopped: number | undefined;
  return {
    url,
    stop: () => {
      if (stopped !== undefined) process.kill(stopped, 'SIGCONT');
      return server.stop();
    },
    loseInCrash: async () => {
      await execute(url, 'checkpoint');
      const { rows } = await execute(url, "select pid from pg_stat_activity where backend_type = 'walwriter'");
      const walWriter: number = rows[0].pid;
      process.kill(walWriter, 'SIGSTOP');
      stopped = walWriter;
      const started = await startTime();
      return async () => {
        const other = new pg.Client({ connectionString: url });
        let isCutOff = false;
        other.on('error', () => {
          isCutOff = true;
        });
        await other.connect();
        stopped = undefined;
        process.kill(walWriter, 'SIGKILL');
        await until('the server ends all its processes', () => isCutOff);
        let recovered: string | undefined;
        await until('the server has recovered', async () => {
          recovered = await startTime().catch(() => undefined);
          return recovered !== undefined;
        });
        assert.equal(recovered, started);
      };
    },
  };
}

/** Rolls back transactions that have a number, on a connection of their own. */
export async function rollBack(url: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (let done = 0; done < count; done += 1) await client.query('begin; select pg_current_xact_id(); rollback');
  await client.end();
}

/** The number of the next transaction. */
export async function nextXid({ url }: PostgresqlServer): Promise<bigint> {
  const { rows } = await execute(url, 'select pg_snapshot_xmax(pg_current_snapshot())::text as xid');
  return BigInt(rows[0].xid);
}
