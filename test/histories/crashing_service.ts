import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { startRestartable } from '../soak/restartable_postgresql.ts';
import { createDatabase, execute } from '../support/postgresql.ts';
import { makeArena, type Scene } from './arena.ts';
import { type Connection, connectTo } from './connection.ts';
import { connectsTo, crashBackend, crashBeforeRollbacksAreLogged } from './crashes.ts';
import { gateBefore } from './gate.ts';
import { type Life, live, type Work } from './live.ts';

/** Two processes of the service on a PostgreSQL server of their own. */
export type CrashingService = {
  /**
   * Lets clients work while a backend crashes.
   *
   * @param isUnseen whether transactions are rolled back just before, whose numbers are assigned again
   * @returns undefined if the arena could not be made
   */
  live(scene: Scene, random: Random, isUnseen: boolean): Promise<Life | undefined>;
};

const work: Work = { clients: 3, steps: 14, pauseMs: 20 };

/** @param nodeArguments of the processes */
export async function withCrashingService<T>(
  nodeArguments: readonly string[],
  use: (service: CrashingService) => Promise<T>,
): Promise<T> {
  const postgresql = await startRestartable();
  const ends: (() => unknown)[] = [() => postgresql.stop()];
  try {
    // So that a number is lost unless a commit takes it to the disk, also where the machine is busy.
    await execute(postgresql.url, "alter system set wal_writer_delay = '10s'");
    await execute(postgresql.url, 'select pg_reload_conf()');
    // Not from the template of the tests: after a crash PostgreSQL assigns the first ids of a copied sequence again.
    const { url } = await createDatabase(postgresql.url);
    const connect = connectsTo(url);
    const start = async (): Promise<Connection> => {
      const server = await startServer({ connection: url, syncOnStartup: true }, nodeArguments);
      ends.push(() => server.kill());
      const connection = connectTo(server.url, { timeoutMs: 10_000 });
      ends.push(() => connection.close());
      return connection;
    };
    const [first, second] = [await start(), await start()];
    return await use({
      live: async (scene, random, isUnseen) => {
        const arena = await makeArena(first, random, scene);
        if (arena === undefined) return undefined;
        const gate = gateBefore([first, second]);
        return live(arena, gate.connections, random, work, async (isOver) => {
          await sleep(random.below(250));
          if (!isUnseen) return crashBackend(connect);
          const knowing = random.percent(50) ? ([first, second] as const) : ([second, first] as const);
          return crashBeforeRollbacksAreLogged(connect, gate, knowing, random, isOver);
        });
      },
    });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}
