import pg from 'pg';
import type { Random } from '../races/random.ts';
import { until } from '../support/until.ts';
import type { Connection } from './connection.ts';
import type { Gate } from './gate.ts';
import { serves } from './serves.ts';

/*
 * Crashes of a backend of PostgreSQL: the server ends all connections, and recovers from its write-ahead log.
 */

/** Connects to the database of the service as another program. */
type Connect = () => Promise<pg.Client>;

/** Connects again and again, while the server recovers. */
export const connectsTo =
  (url: string): Connect =>
  async () => {
    let found: pg.Client | undefined;
    await until('PostgreSQL answers', async () => {
      const client = new pg.Client({ connectionString: url });
      client.on('error', () => {}); // the server may end it
      try {
        await client.connect();
        found = client;
      } catch {}
      return found !== undefined;
    });
    if (found === undefined) throw new Error('until has waited for it');
    return found;
  };

/** The id of a backend that serves the service. */
async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    "select pid from pg_stat_activity where application_name = 'placement' order by random() limit 1",
  );
  if (rows[0] === undefined) throw new Error('The service has no connection to the database.');
  return rows[0].pid;
}

/** Kills a backend while requests are under way. Resolves when the server has recovered. */
export async function crashBackend(connect: Connect): Promise<void> {
  const client = await connect();
  await kill(await backendOf(client), client);
  await (await connect()).end();
}

/** Kills a backend. Resolves when the server has ended another connection: it ends all of them. */
async function kill(pid: number, other: pg.Client): Promise<void> {
  const ended = new Promise<void>((resolve) => other.once('end', resolve));
  process.kill(pid, 'SIGKILL');
  await ended;
}

/**
 * Kills a backend just after some transactions were rolled back. One process of the service knows these transactions, but the write-ahead
 * log has no record of them yet: so the server assigns their numbers again, to writes of the other process. Meanwhile the first process
 * gets no request.
 *
 * @param isOver whether no more requests come
 */
export async function crashBeforeRollbacksAreLogged(
  connect: Connect,
  gate: Gate,
  [knowing, other]: readonly [Connection, Connection],
  random: Random,
  isOver: () => boolean,
): Promise<void> {
  const rolledBack = 3 + random.below(4);
  try {
    const client = await connect();
    const pid = await backendOf(client);
    await gate.hold();
    for (let count = 0; count < rolledBack; count += 1) {
      await client.query('begin; select pg_current_xact_id(); rollback');
    }
    await serves(knowing);
    const killed = kill(pid, client);
    gate.open(other);
    await killed;
    await numbersAreGiven(await connect(), rolledBack, isOver);
  } finally {
    gate.open();
  }
}

/** Waits until some more transactions have numbers. */
async function numbersAreGiven(client: pg.Client, count: number, isOver: () => boolean): Promise<void> {
  const next = async (): Promise<number> => {
    const { rows } = await client.query('select pg_snapshot_xmax(pg_current_snapshot())::text as next');
    return Number(rows[0].next);
  };
  const first = await next();
  await until('the other process has written', async () => isOver() || (await next()) > first + count);
  await client.end();
}
