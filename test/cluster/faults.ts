import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execute } from '../support/postgresql.ts';
import type { Cluster, DatabaseNode } from './cluster.ts';

/** Breaks a part of the cluster under load. Nothing but the fault itself is done or undone by it. */
export type Fault = {
  readonly name: string;
  readonly cause: (cluster: Cluster) => Promise<void>;
  /** Whether another node must become the primary. */
  readonly promotes?: true;
  /** The processes of the service that it ends. No other one may end. */
  readonly ends?: readonly string[];
};

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

async function switchOver({ patronictl }: Cluster): Promise<void> {
  await patronictl('switchover', '--force');
}

/** A switchover while the primary cannot shut down, since one of its WAL senders is stopped. */
async function switchOverFromHungPrimary(cluster: Cluster): Promise<void> {
  const [sender] = await cluster.query("select pid from pg_stat_replication where sync_state <> 'sync'");
  process.kill(Number(sender?.pid), 'SIGSTOP');
  await switchOver(cluster);
}

async function killAll({ processes }: Cluster): Promise<void> {
  for (const each of processes) await each.signal('SIGKILL');
}

/** Stops the primary for 30 s, as a machine that is paused. */
async function pausePrimary(cluster: Cluster): Promise<void> {
  const { unit } = await primaryOf(cluster);
  await unit.signal('SIGSTOP');
  await sleep(30_000);
  await unit.signal('SIGCONT');
}

/** Fills the disk of the primary, and makes room on it after 20 s. */
async function fillDisk(cluster: Cluster, meanwhile?: (primary: DatabaseNode) => Promise<void>): Promise<void> {
  const primary = await primaryOf(cluster);
  const filler = path.join(primary.disk, 'filler');
  // It fails, since there is no more room.
  await new Promise((resolve) => execFile('dd', ['if=/dev/zero', `of=${filler}`, 'bs=1M'], resolve));
  const room = sleep(20_000);
  await meanwhile?.(primary);
  await room;
  rmSync(filler);
}

/** Uses up the files of the write-ahead log that a server has in reserve, until it ends for lack of room. */
async function useUpReserve({ url }: DatabaseNode): Promise<void> {
  const switched = () =>
    execute(url, "select pg_logical_emit_message(false, 'reserve', ''), pg_switch_wal()").then(
      () => true,
      () => false,
    );
  while (await switched());
}

export const faults: readonly Fault[] = [
  { name: 'nothing', cause: () => sleep(5_000) },
  {
    name: 'patronictl switchover',
    promotes: true,
    cause: switchOver,
  },
  {
    name: 'patronictl switchover, and the primary does not shut down',
    promotes: true,
    cause: switchOverFromHungPrimary,
  },
  {
    name: 'kill -9 of the primary',
    promotes: true,
    cause: async (cluster) => (await primaryOf(cluster)).unit.signal('SIGKILL'),
  },
  { name: 'kill -9 of etcd', cause: ({ etcd }) => etcd.signal('SIGKILL') },
  { name: 'kill -9 of one process', ends: ['p2'], cause: async ({ processes }) => processes[1]?.signal('SIGKILL') },
  {
    name: 'kill -9 of all processes',
    ends: ['p1', 'p2', 'p3'],
    cause: killAll,
  },
  { name: 'the primary is stopped for 30 s', promotes: true, cause: pausePrimary },
  {
    name: 'the primary is stopped for 30 s, and kill -9 of all processes',
    promotes: true,
    ends: ['p1', 'p2', 'p3'],
    cause: async (cluster) => {
      const paused = pausePrimary(cluster);
      await killAll(cluster);
      await paused;
    },
  },
  {
    name: 'the synchronous standby falls behind',
    cause: async (cluster) => {
      const receiver = await receiverOfSynchronous(cluster);
      process.kill(receiver, 'SIGSTOP');
      await sleep(15_000);
      process.kill(receiver, 'SIGCONT');
    },
  },
  {
    name: 'the primary is stopped while its standby is behind',
    promotes: true,
    cause: async (cluster) => {
      const receiver = await receiverOfSynchronous(cluster);
      process.kill(receiver, 'SIGSTOP');
      // Patroni notes the position of the primary every 2 s. After 5 s the primary would end the replication.
      await sleep(4_000);
      const paused = pausePrimary(cluster);
      await sleep(1_000);
      process.kill(receiver, 'SIGCONT');
      await paused;
    },
  },
  { name: 'the disk of the primary is full', cause: (cluster) => fillDisk(cluster) },
  {
    name: 'the disk of the primary is full, and patronictl switchover',
    promotes: true,
    cause: (cluster) => fillDisk(cluster, () => switchOver(cluster)),
  },
  {
    name: 'the disk of the primary has no room for its write-ahead log',
    promotes: true,
    cause: (cluster) => fillDisk(cluster, useUpReserve),
  },
];
