import type { Random } from '../races/random.ts';
import type { Deployment } from './deployment.ts';
import { type Fault, forAWhile, type LeftOut } from './faults.ts';

/** What goes wrong with a PostgreSQL server, and what other programs do there. */
export function databaseFaults({ database }: Deployment): readonly (Fault | LeftOut)[] {
  if (database === undefined) {
    return [{ name: 'faults of PostgreSQL, with failover to a standby', reason: 'the database is the embedded one' }];
  }
  const { primary, network, connect } = database;
  /** Another program does something in the database; it may be interrupted by other faults. */
  const other =
    (...statements: readonly string[]) =>
    async (random: Random) => {
      const client = await connect();
      try {
        for (const statement of statements) await client.query(statement);
        if (statements[0]?.startsWith('begin')) {
          await forAWhile(random);
          await client.query('rollback');
        }
      } finally {
        await client.end();
      }
    };
  const halfOf = (table: string) => `select id from ${table} where id % 2 = 0 order by id for update`;
  return [
    {
      name: 'immediate shutdown of PostgreSQL',
      happen: async (random) => {
        await primary.shutDownAtOnce();
        await forAWhile(random);
        await primary.start();
      },
    },
    {
      name: 'a backend of PostgreSQL crashes',
      happen: async () => {
        const client = await connect();
        const { rows } = await client.query(
          "select pid from pg_stat_activity where application_name = 'placement' limit 1",
        );
        if (rows[0] === undefined) {
          await client.end();
          return false;
        }
        // The server answers until it has noticed. Then it ends all connections, and recovers.
        const noticed = new Promise<void>((resolve) => {
          client.once('end', resolve); // events.once() would reject at the 'error' that comes before
        });
        process.kill(rows[0].pid, 'SIGKILL');
        await noticed;
        await primary.start();
        return true;
      },
    },
    {
      name: 'connections to PostgreSQL are terminated',
      happen: other("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'placement'"),
    },
    { name: 'rows of providers are locked', happen: other('begin', halfOf('resource_providers')) },
    { name: 'rows of consumers are locked', happen: other('begin', halfOf('consumers')) },
    { name: 'a table is locked', happen: other('begin', 'lock table allocations in access exclusive mode') },
    {
      name: 'a long transaction',
      happen: other(
        'begin isolation level repeatable read',
        'select pg_current_xact_id()',
        'select count(*) from allocations',
      ),
    },
    { name: 'VACUUM FULL', happen: other('vacuum full allocations', 'vacuum full resource_providers') },
    { name: 'REINDEX', happen: other('reindex table allocations', 'reindex table consumers') },
    {
      name: 'failover to a standby',
      happen: async () => {
        await primary.failOver();
        network.lead(primary.port);
        network.cut();
      },
    },
  ];
}
