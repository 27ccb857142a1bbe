import { execute } from '../support/postgresql.ts';
import { removeAll } from './load_by_sql.ts';
import type { MeasuredServer } from './measured_server.ts';
import { firstProcess, queryOn } from './own_server.ts';

/** A server that already runs, as named on the command line. */
export type RunningServer = {
  readonly name: string;
  readonly urls: readonly string[];
  readonly pids: readonly number[];
  /** Its PostgreSQL database. **Everything in it is removed.** */
  readonly databaseUrl: string;
};

/**
 * Any server of the API that runs without authentication, for example OpenStack Placement. It continues to serve while
 * its data is replaced.
 *
 * @throws Error if its database cannot be reached
 */
export async function runningServer({ name, urls, pids, databaseUrl }: RunningServer): Promise<MeasuredServer> {
  await execute(databaseUrl, 'select 1');
  const query = queryOn(databaseUrl);
  return {
    name,
    urls: () => urls,
    pids: () => pids,
    databasePid: await firstProcess(databaseUrl).catch(() => undefined),
    databaseUrl: () => databaseUrl,
    fill: async (load) => {
      await removeAll(query);
      await load(query);
    },
    close: async () => {},
  };
}
