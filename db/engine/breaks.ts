import type pg from 'pg';
import { tellsCrashes } from './server_run.ts';

/**
 * Which connections to the server broke. The server may have crashed then, another one may answer from now on, or a virtual machine may
 * have gone back to an earlier state: what was read before may be of transactions that are lost.
 */
export type Breaks = {
  /** How many connections broke so far. */
  readonly count: number;
  /** Whether one broke, and since then nothing was read anew, and nothing has proved that the server goes on as before. */
  isInDoubt(): boolean;
  /** Notes that all was read anew, beginning when so many had broken. */
  settle(count: number): void;
};

/** The same for those that open connections and send statements. */
export type BreakWatch = Breaks & {
  /** Watches a connection from its beginning. */
  watch(client: pg.PoolClient): void;
  /** Notes when a statement is answered that is being sent on a connection. @returns the answer */
  noteAnswer<T>(client: pg.PoolClient, answer: Promise<T>): Promise<T>;
};

/**
 * A server that crashes ends all its connections. So a statement that is sent after a break, and answered on a connection that was open
 * before it, proves that the server goes on: only the other one was cut off, as by an administrator or a firewall.
 *
 * A connection to a pooler proves nothing, since the pooler connects to the server anew when it has to. For the same reason it means nothing
 * that it breaks, if each statement tells the run of the server.
 */
export function watchForBreaks(): BreakWatch {
  type Connection = { readonly openedAfter: number; isDirect: boolean; isIgnored: boolean };
  const connections = new WeakMap<pg.PoolClient, Connection>();
  let count = 0;
  /** The breaks up to this one are of no consequence any more. */
  let settled = 0;
  return {
    get count() {
      return count;
    },
    isInDoubt: () => count > settled,
    settle: (until) => {
      settled = Math.max(settled, until);
    },
    watch: (client) => {
      const connection = { openedAfter: count, isDirect: false, isIgnored: false };
      connections.set(client, connection);
      // It is not emitted for a connection that this process ends.
      client.once('error', () => {
        if (!connection.isIgnored) count += 1;
      });
      const answered = ({ rows: [row] }: pg.QueryResult<{ pid: number; tellsCrashes: boolean }>) => {
        connection.isDirect = row?.pid === processIdOf(client);
        connection.isIgnored = !connection.isDirect && row?.tellsCrashes === true;
      };
      client.query(`select pg_backend_pid() as pid, ${tellsCrashes} as "tellsCrashes"`).then(answered, () => {});
    },
    noteAnswer: async (client, answer) => {
      const sentAfter = count;
      const result = await answer;
      const connection = connections.get(client);
      if (connection?.isDirect && connection.openedAfter <= settled) settled = Math.max(settled, sentAfter);
      return result;
    },
  };
}

/** The process that the server named when the connection was opened. A pooler names one of its own. */
const processIdOf = (client: pg.PoolClient): unknown => ('processID' in client ? client.processID : undefined);
