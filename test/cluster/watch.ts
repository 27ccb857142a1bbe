import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Cluster, DatabaseNode } from './cluster.ts';

/** What is known of the database without the service, by `Date.now()`. */
export type Watched = {
  /** When a server ended its recovery, and so became the primary. */
  readonly promotedMs: readonly number[];
  /** When something was committed at the address of the database. */
  readonly committedMs: readonly number[];
};

/** Watches the database from now on, until the process ends. */
export function watchDatabase({ nodes, probe }: Cluster): Watched {
  const promotedMs: number[] = [];
  const committedMs: number[] = [];
  for (const node of nodes) void watchRecovery(node, promotedMs);
  const commit = async (): Promise<never> => {
    for (;;) {
      await probe().then(
        () => committedMs.push(Date.now()),
        () => {},
      );
      await sleep(50);
    }
  };
  void commit();
  return { promotedMs, committedMs };
}

async function watchRecovery({ url }: DatabaseNode, promotedMs: number[]): Promise<never> {
  let wasInRecovery = false;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000, query_timeout: 1_000 });
    client.on('error', () => {}); // the query throws it
    try {
      await client.connect();
      for (;;) {
        const { rows } = await client.query('select pg_is_in_recovery() as answer');
        const isInRecovery = rows[0].answer === true;
        if (wasInRecovery && !isInRecovery) promotedMs.push(Date.now());
        wasInRecovery = isInRecovery;
        await sleep(20);
      }
    } catch {
      void client.end().catch(() => {});
      await sleep(100);
    }
  }
}
