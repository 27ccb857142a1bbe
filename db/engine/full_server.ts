import type pg from 'pg';
import { isTooManyConnections } from './sqlstate.ts';

/** So long after the server has refused a connection no further one is opened, in milliseconds. */
export const fullServerPauseMs = 1_000;

/**
 * Lets requests wait for one of the open connections of a pool where the server has no place for a further one: other programs may have
 * taken all. node-postgres would fail the request for which it opened that connection, while others go on.
 *
 * After a refusal no connection is opened for some time, then one; each that succeeds lets the next one be opened. Meanwhile no open one
 * is closed for being idle, since its place may be gone.
 *
 * @param options.hasOther whether callers have another pool to turn to. Then a pool without any connection does not ask the server again
 *   before that time is over.
 * @returns the same pool, whose `connect` rejects with the refusal only if it has no open connection
 */
export function sparingFullServer(pool: pg.Pool, { hasOther = false }: { readonly hasOther?: boolean } = {}): pg.Pool {
  const { options } = pool;
  const { max: most, connectionTimeoutMillis: patienceMs = 0 } = options;
  let opened = 0;
  /** The last refusal, until connections may be opened again. */
  let refusal: unknown;
  pool.on('connect', () => {
    opened += 1;
    if (options.max < most) allow(opened + 1);
  });
  pool.on('remove', () => {
    opened -= 1;
  });
  /** The pool counts connections that are being opened, and `opened` those that are being closed. */
  const openNow = (): number => Math.min(opened, pool.totalCount);
  const allow = (connections: number): void => {
    options.max = Math.min(most, Math.max(1, connections));
    options.min = options.max < most ? options.max : 0;
  };
  const pause = (error: unknown): void => {
    allow(openNow());
    if (refusal === undefined) {
      const end = (): void => {
        refusal = undefined;
        if (options.max < most) allow(openNow() + 1);
      };
      setTimeout(end, fullServerPauseMs).unref();
    }
    refusal = error;
  };

  const connect = pool.connect.bind(pool);
  // Kysely and transaction() call connect() without a callback, so only the form with a promise is replaced.
  pool.connect = (async () => {
    const startedMs = performance.now();
    for (;;) {
      if (hasOther && refusal !== undefined && openNow() === 0) throw refusal;
      try {
        return await connect();
      } catch (error) {
        if (!isTooManyConnections(error)) throw error;
        pause(error);
        const isLate = patienceMs > 0 && performance.now() - startedMs > patienceMs;
        if (openNow() === 0 || isLate) throw error;
      }
    }
  }) as typeof pool.connect;
  return pool;
}

/**
 * Makes a pool use the connections of another one where it gets none of its own from a full server.
 *
 * @param borrow takes a connection of the other pool
 */
export function borrowingFrom(pool: pg.Pool, borrow: () => Promise<pg.PoolClient>): pg.Pool {
  const connect = pool.connect.bind(pool);
  pool.connect = (async () => {
    try {
      return await connect();
    } catch (error) {
      if (isTooManyConnections(error)) return borrow();
      throw error;
    }
  }) as typeof pool.connect;
  return pool;
}

/**
 * Lets work that has to use the connections of others go one after the other, with a pause after what fails: what waits for a lock would
 * otherwise occupy them again and again.
 */
export function oneAfterTheOther(pauseMs: number): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  const pause = () => new Promise((end) => setTimeout(end, pauseMs));
  return (work) => {
    const done = last.then(work);
    last = done.catch(pause);
    return done;
  };
}
