import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Random } from '../races/random.ts';
import { databaseFaults } from './database_faults.ts';
import { type Deployment, openFilesOf, type Server, toProcess } from './deployment.ts';
import { clockFaults, fullDisk, slowWrites } from './machine_faults.ts';

const run = promisify(execFile);

/** Something that goes wrong for a while. */
export type Fault = {
  readonly name: string;
  /** Whether the clock of the database jumps meanwhile, by which terms end. */
  readonly jumpsClock?: boolean;
  /** Does it, and mends it. @returns false if there was nothing that it could happen to, and so it did not happen */
  happen(random: Random): Promise<void> | Promise<boolean>;
};

/** A fault that cannot happen here. */
export type LeftOut = { readonly name: string; readonly reason: string };

/** Lets a fault last for some time. */
export const forAWhile = (random: Random): Promise<void> => sleep(100 + random.below(1500));

/** The faults that can happen to a deployment. */
export function faultsOf(deployment: Deployment): readonly (Fault | LeftOut)[] {
  const { servers, database, keystone } = deployment;
  const one = (random: Random): Server => random.pick(servers);
  const restarted =
    (...nodeArguments: readonly string[]) =>
    async (random: Random) => {
      const server = one(random);
      await server.kill();
      await server.start({ nodeArguments });
    };
  return [
    { name: 'kill -9 of a process', happen: restarted() },
    { name: 'a process with a small heap', happen: restarted('--max-old-space-size=64') },
    {
      name: 'a process is stopped',
      happen: (random) =>
        toProcess(one(random).pid, async (pid) => {
          process.kill(pid, 'SIGSTOP');
          await forAWhile(random);
          process.kill(pid, 'SIGCONT');
        }),
    },
    {
      name: 'no more file descriptors',
      happen: (random) => {
        const server = one(random);
        return toProcess(server.pid, async (pid) => {
          const limit = (soft: number | string) => run('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`]);
          const before = (
            await run('prlimit', ['--pid', `${pid}`, '--nofile', '-o', 'SOFT', '--noheadings'])
          ).stdout.trim();
          await limit(await openFilesOf(pid));
          server.network.cut(); // its clients connect again
          await forAWhile(random);
          await limit(before);
        });
      },
    },
    {
      name: 'Keystone is away',
      happen: async (random) => {
        await keystone.down();
        await forAWhile(random);
        await keystone.up();
      },
    },
    ...networkFaults('clients', (random) => one(random).network),
    ...(database === undefined ? [] : networkFaults('the database', () => database.network)),
    fullDisk(deployment),
    slowWrites(deployment),
    ...clockFaults(deployment),
    ...databaseFaults(deployment),
  ];
}

const networkFaults = (whose: string, networkOf: (random: Random) => Server['network']): readonly Fault[] => [
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
