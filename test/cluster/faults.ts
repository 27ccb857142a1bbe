import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, DatabaseNode } from './cluster.ts';

/** Breaks a part of the cluster under load. Nothing but the fault itself is done or undone by it. */
export type Fault = { readonly name: string; readonly cause: (cluster: Cluster) => Promise<void> };

const primaryOf = async (cluster: Cluster): Promise<DatabaseNode> => {
  const primary = await cluster.primary();
  if (primary === undefined) throw new Error('There is no primary.');
  return primary;
};

/** The WAL receiver of a standby that commits wait for. */
async function receiverOfSynchronous(cluster: Cluster): Promise<number> {
  const [row] = await cluster.query(
    "select application_name as name from pg_stat_replication where sync_state = 'sync'",
  );
  const node = cluster.nodes.find(({ name }) => name === row?.name);
  const postmaster = Number.parseInt(readFileSync(`${node?.disk}/data/postmaster.pid`, 'utf8'), 10);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const { stdout } = spawnSync('ps', ['-o', 'ppid=,args=', '-p', pid], { encoding: 'utf8' });
    const [, parent] = /^\s*(\d+) .*walreceiver/.exec(stdout) ?? [];
    if (Number(parent) === postmaster) return Number(pid);
  }
  throw new Error(`${node?.name} has no WAL receiver.`);
}

export const faults: readonly Fault[] = [
  { name: 'nothing', cause: () => sleep(5_000) },
  {
    name: 'patronictl switchover',
    cause: async (cluster) => {
      cluster.patronictl('switchover', '--force');
    },
  },
  { name: 'kill -9 of the primary', cause: async (cluster) => (await primaryOf(cluster)).unit.signal('SIGKILL') },
  { name: 'kill -9 of etcd', cause: ({ etcd }) => etcd.signal('SIGKILL') },
  { name: 'kill -9 of a process', cause: async ({ processes }) => processes[1]?.signal('SIGKILL') },
  {
    name: 'the primary stopped for 30 s',
    cause: async (cluster) => {
      const { unit } = await primaryOf(cluster);
      await unit.signal('SIGSTOP');
      await sleep(30_000);
      await unit.signal('SIGCONT');
    },
  },
  {
    name: 'a synchronous standby falls behind',
    cause: async (cluster) => {
      const receiver = await receiverOfSynchronous(cluster);
      process.kill(receiver, 'SIGSTOP');
      await sleep(15_000);
      process.kill(receiver, 'SIGCONT');
    },
  },
  {
    name: 'the disk of the primary is full',
    cause: async (cluster) => {
      const { disk } = await primaryOf(cluster);
      const filler = path.join(disk, 'filler');
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=1M'], { stdio: 'ignore' });
      execFileSync('sync', ['-f', disk]);
      await sleep(20_000);
      rmSync(filler);
    },
  },
];
