import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { succeed } from '../races/client.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

/** OpenStack Placement on SQLite, where it has fewer faults than on PostgreSQL. */
export type UpstreamOnSqlite = Omit<Upstream, 'url'> & {
  /** Runs statements on its database, in one transaction. */
  write(statements: Iterable<string>): void;
};

/** Serves OpenStack Placement on an empty SQLite database with these custom traits. */
export async function startUpstreamOnSqlite(customTraits: readonly string[]): Promise<UpstreamOnSqlite> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'upstream-sqlite-'));
  const file = path.join(folder, 'placement.db');
  await upstreamDbSync(`sqlite:///${file}`);
  // The server is not root.
  await chmod(folder, 0o777);
  await chmod(file, 0o666);
  const { client, stop } = await startUpstream(`sqlite:///${file}`);
  for (const name of customTraits) await succeed(client, 'PUT', `/traits/${name}`, 39);
  const database = new DatabaseSync(file, { timeout: 10_000 });
  return {
    client,
    write: (statements) => database.exec(['begin immediate', ...statements, 'commit'].join(';\n')),
    stop: async () => {
      database.close();
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
