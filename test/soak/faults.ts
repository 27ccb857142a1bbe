import { execFile } from 'node:child_process';
import { open, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Random } from '../races/random.ts';
import { type Deployment, openFilesOf, type Server } from './deployment.ts';

const run = promisify(execFile);

/** Something that goes wrong for a while. */
export type Fault = {
  readonly name: string;
  /** Does it, and mends it. */
  happen(random: Random): Promise<void>;
};

/** The faults that can happen to a deployment. */
export function faultsOf({ servers, database, disk }: Deployment): readonly Fault[] {
  const one = (random: Random): Server => random.pick(servers);
  const forAWhile = (random: Random) => sleep(100 + random.below(1500));
  const restarted =
    (...nodeArguments: readonly string[]) =>
    async (random: Random) => {
      const server = one(random);
      await server.kill();
      await server.start(nodeArguments);
    };
  return [
    { name: 'kill -9 of a process', happen: restarted() },
    { name: 'a process with a small heap', happen: restarted('--max-old-space-size=64') },
    {
      name: 'a process is stopped',
      happen: async (random) => {
        const { pid } = one(random);
        process.kill(pid, 'SIGSTOP');
        try {
          await forAWhile(random);
        } finally {
          process.kill(pid, 'SIGCONT');
        }
      },
    },
    {
      name: 'no more file descriptors',
      happen: async (random) => {
        const { pid } = one(random);
        const limit = (soft: number | string) => run('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`]);
        const before = (
          await run('prlimit', ['--pid', `${pid}`, '--nofile', '-o', 'SOFT', '--noheadings'])
        ).stdout.trim();
        await limit(await openFilesOf(pid));
        one(random).network.cut(); // its clients connect again
        await forAWhile(random);
        await limit(before);
      },
    },
    ...ofNetwork('clients', (random) => one(random).network, forAWhile),
    ...(disk === undefined ? [] : [ofDisk(disk, servers, database, forAWhile)]),
    ...(database === undefined ? [] : ofDatabase(database, forAWhile)),
  ];
}

const ofNetwork = (
  whose: string,
  networkOf: (random: Random) => Server['network'],
  forAWhile: (random: Random) => Promise<void>,
): readonly Fault[] => [
  { name: `connections of ${whose} are cut`, happen: async (random) => networkOf(random).cut() },
  {
    name: `connections of ${whose} are slow`,
    happen: async (random) => {
      const network = networkOf(random);
      network.delay(5 + random.below(100));
      await forAWhile(random);
      network.delay(0);
    },
  },
  {
    name: `nothing gets through to ${whose}`,
    happen: async (random) => {
      const network = networkOf(random);
      network.block(true);
      await forAWhile(random);
      network.block(false);
    },
  },
];

/** Fills the disk for a while. What ends by that is started again. */
const ofDisk = (
  disk: string,
  servers: readonly Server[],
  database: Deployment['database'],
  forAWhile: (random: Random) => Promise<void>,
): Fault => ({
  name: 'the disk is full',
  happen: async (random) => {
    const file = path.join(disk, 'ballast');
    const ballast = await open(file, 'w');
    try {
      const { bavail, bsize } = await statfs(disk);
      const block = Buffer.alloc(bsize);
      for (let left = bavail; left > 0; left -= 1) await ballast.write(block);
    } catch {
      // it is full already
    }
    await ballast.close();
    await forAWhile(random);
    await rm(file);
    await database?.postgresql.start();
    for (const server of servers) {
      const isThere = await openFilesOf(server.pid).catch(() => 0);
      if (isThere === 0) await server.start();
    }
  },
});

function ofDatabase(
  { postgresql, network, connect }: NonNullable<Deployment['database']>,
  forAWhile: (random: Random) => Promise<void>,
): readonly Fault[] {
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
        await postgresql.shutDownAtOnce();
        await forAWhile(random);
        await postgresql.start();
      },
    },
    {
      name: 'a backend of PostgreSQL crashes',
      happen: async () => {
        const client = await connect();
        const { rows } = await client.query(
          "select pid from pg_stat_activity where application_name = 'placement' limit 1",
        );
        if (rows[0] !== undefined) process.kill(rows[0].pid, 'SIGKILL');
        await client.end().catch(() => {});
        await postgresql.start();
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
    ...ofNetwork('the database', () => network, forAWhile),
  ];
}
