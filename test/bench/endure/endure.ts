import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../connection.ts';
import { flatHost } from '../data_set.ts';
import { loadTrees } from '../load_by_sql.ts';
import { withConnections } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { queryOn } from '../own_server.ts';
import { openEndureLoad } from './load.ts';
import { type Figures, figuresBetween } from './report.ts';
import { takeSnapshot } from './snapshot.ts';

/** The result of a long run. */
export type Endured = { readonly first: Figures; readonly last: Figures };

const connections = 16;
/** The first part is measured after this share of a part: V8 compiles what is used, and the tables get their first rows. */
const warmUpShare = 0.25;

/**
 * Keeps a server on PostgreSQL busy for a long time, and measures the first minute and the last one; if it takes less than three
 * minutes, its first and last third.
 *
 * @param providers the number of hosts
 */
export async function endure(server: MeasuredServer, providers: number, durationMs: number): Promise<Endured> {
  await server.fill((query) => loadTrees(query, [flatHost], providers));
  const url = server.databaseUrl();
  if (url === undefined) throw new Error('A long run needs a PostgreSQL database.');
  const query = queryOn(url);
  const load = openEndureLoad(providers);
  const partMs = Math.min(60_000, durationMs / 3);
  const warmUpMs = partMs * warmUpShare;
  return withConnections(server, connections, async (open) => {
    const snapshot = () => takeSnapshot(server, query, load.done);
    const measure = async (): Promise<Endured> => {
      await sleep(warmUpMs);
      const began = await snapshot();
      await sleep(partMs);
      const early = await snapshot();
      await sleep(durationMs - warmUpMs - 2 * partMs);
      const late = await snapshot();
      await sleep(partMs);
      return { first: figuresBetween(began, early), last: figuresBetween(late, await snapshot()) };
    };
    let isEnded = false;
    const work = async (connection: Connection): Promise<void> => {
      while (!isEnded) await load.operate(connection);
    };
    const working = Promise.all(open.map(work));
    const measured = measure().finally(() => {
      isEnded = true;
    });
    // An error of the load ends the run at once.
    await Promise.race([measured, working]);
    await working;
    return measured;
  });
}
